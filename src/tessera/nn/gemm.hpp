// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>
#include <tessera/nn/matmul_precision.hpp>

namespace tessera {

enum class Trans : char { no = 'N', yes = 'T' };

/// C = alpha op(A) op(B) + beta C through KokkosBlas, T float or double.
///
/// It owns the scratch memory that rounded operands need, so that a call allocates nothing.
template <class T>
class Gemm {
 public:
  /// With tf32, `scratch_a` and `scratch_b` are the largest element counts of the first and the
  /// second operand of any product; strict needs none. Throws ConfigError for tf32 of doubles.
  explicit Gemm(MatmulPrecision precision = MatmulPrecision::strict, Size scratch_a = 0,
                Size scratch_b = 0);

  /// op(A) (m, k), op(B) (k, n), C (m, n), none of them aliasing C. An empty sum (k = 0) leaves
  /// beta C; beta = 0 overwrites C whatever it held. Throws Error if the shapes do not fit or an
  /// operand is larger than the scratch memory.
  void operator()(Trans trans_a, Trans trans_b, T alpha, const Matrix<const T>& a,
                  const Matrix<const T>& b, T beta, const Matrix<T>& c) const;

  MatmulPrecision precision() const { return precision_; }

 private:
  MatmulPrecision precision_;
  Vector<T> scratch_a_;
  Vector<T> scratch_b_;
};

/// out = in with every element rounded to TF32: eight exponent and ten mantissa bits, nearest, ties
/// away from zero; infinities and NaN stay. Both of n elements; they may be the same memory.
void round_to_tf32(const Vector<const float>& in, const Vector<float>& out);

}  // namespace tessera
