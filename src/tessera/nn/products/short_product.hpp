// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>

#include <tessera/base/types.hpp>
#include <tessera/nn/products/gemm.hpp>

namespace tessera::detail {

/// C (m, n) = op(A) op(B) + beta C, row-major: of operands of one 16-bit type, added up in float,
/// or of whole ones.
struct ShortProduct {
  Trans trans_a, trans_b;
  Size m, n, k;        ///< positive
  Size lda, ldb, ldc;  ///< elements from one row of A, B or C to the next
  double beta;
  DType operands;
  DType result;  ///< that of the operands, or float32
  MatmulPrecision precision = MatmulPrecision::strict;

  auto operator<=>(const ShortProduct&) const = default;
};

/// Through the library that short_products() names, which is not the emulation; of whole operands
/// where has_native_tf32(). Does not wait for the device. Throws Error for what the library
/// reports.
void multiply(const ShortProduct& product, const void* a, const void* b, void* c);

}  // namespace tessera::detail
