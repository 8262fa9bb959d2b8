// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>
#include <tessera/nn/products/matmul_precision.hpp>

namespace tessera {

enum class Trans : char { no = 'N', yes = 'T' };

/// C = op(A) op(B) + beta C. KokkosBlas multiplies float and double; half_products() names the
/// implementation for BFloat16 and Float16.
///
/// Owns the scratch memory of rounded and widened operands; a call allocates no Kokkos memory.
template <class T>
class Gemm {
 public:
  using Sum = StateOf<T>;  ///< type of the sums

  /// `scratch` is used in tf32 precision and by emulated half-precision products. Throws
  /// ConfigError for tf32 with a type other than float.
  explicit Gemm(MatmulPrecision precision = MatmulPrecision::strict,
                const MatmulScratch& scratch = {},
                HalfProducts products = half_products(dtype_of<T>()));

  /// op(A) (m, k), op(B) (k, n), C (m, n); each may be a block of a wider matrix. A and B must not
  /// alias C. k = 0 gives beta C. beta = 0 overwrites C, also NaN. Throws Error (usage) if the
  /// shapes do not match or an operand is larger than the scratch memory.
  void operator()(Trans trans_a, Trans trans_b, const Matrix<const T>& a, const Matrix<const T>& b,
                  Sum beta, const Matrix<T>& c) const {
    multiply(trans_a, trans_b, a, b, beta, c);
  }
  /// The same with 16-bit operands and unrounded sums as the result.
  void operator()(Trans trans_a, Trans trans_b, const Matrix<const T>& a, const Matrix<const T>& b,
                  Sum beta, const Matrix<Sum>& c) const requires is_half_v<T> {
    multiply(trans_a, trans_b, a, b, beta, c);
  }

 private:
  template <class C>
  void multiply(Trans trans_a, Trans trans_b, const Matrix<const T>& a, const Matrix<const T>& b,
                Sum beta, const Matrix<C>& c) const;

  MatmulPrecision precision_;
  HalfProducts products_;
  Vector<Sum> left_, right_, result_;
};

}  // namespace tessera
