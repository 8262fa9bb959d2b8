// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>
#include <tessera/nn/products/matmul_precision.hpp>

namespace tessera {

enum class Trans : char { no = 'N', yes = 'T' };

/// C = op(A) op(B) + beta C; T float or double through KokkosBlas, BFloat16 or Float16 as
/// short_products() says.
///
/// It owns the scratch memory that rounded and widened operands need, so that a call allocates
/// nothing of Kokkos'.
template <class T>
class Gemm {
 public:
  using Sum = StateOf<T>;  ///< in which products are added up

  /// `scratch`: of any product; none is needed in strict precision, unless 16-bit products are
  /// emulated. Throws ConfigError for tf32 of anything but float.
  explicit Gemm(MatmulPrecision precision = MatmulPrecision::strict,
                const MatmulScratch& scratch = {},
                ShortProducts products = short_products(dtype_of<T>()));

  /// op(A) (m, k), op(B) (k, n), C (m, n), blocks of columns included, none of them aliasing C. An
  /// empty sum (k = 0) leaves beta C; beta = 0 overwrites C whatever it held. Throws Error if the
  /// shapes do not fit or an operand is larger than the scratch memory.
  void operator()(Trans trans_a, Trans trans_b, const Matrix<const T>& a, const Matrix<const T>& b,
                  Sum beta, const Matrix<T>& c) const {
    multiply(trans_a, trans_b, a, b, beta, c);
  }
  /// The same of 16-bit operands into sums that are not rounded.
  void operator()(Trans trans_a, Trans trans_b, const Matrix<const T>& a, const Matrix<const T>& b,
                  Sum beta, const Matrix<Sum>& c) const requires is_half_v<T> {
    multiply(trans_a, trans_b, a, b, beta, c);
  }

 private:
  template <class C>
  void multiply(Trans trans_a, Trans trans_b, const Matrix<const T>& a, const Matrix<const T>& b,
                Sum beta, const Matrix<C>& c) const;

  MatmulPrecision precision_;
  ShortProducts products_;
  Vector<Sum> left_, right_, result_;
};

/// out = in with every element rounded to TF32: eight exponent and ten mantissa bits, nearest, ties
/// away from zero; infinities and NaN stay. Both of n elements; they may be the same memory.
void round_to_tf32(const Vector<const float>& in, const Vector<float>& out);

}  // namespace tessera
