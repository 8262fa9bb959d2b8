// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>

#include <tessera/base/types.hpp>
#include <tessera/nn/products/gemm.hpp>

namespace tessera::detail {

/// The product C (m, n) = op(A) op(B) + beta C of row-major matrices, for a library beside Kokkos
/// Kernels. Operands have one type. 16-bit operands are summed in float.
struct LibraryProduct {
  Trans trans_a, trans_b;
  Size m, n, k;        ///< positive
  Size lda, ldb, ldc;  ///< elements from one row of A, B or C to the next
  double beta;
  DType operands;
  DType result;  ///< type of the operands, or float32
  MatmulPrecision precision = MatmulPrecision::strict;
  GemmBatch batch{};  ///< one product unless has_native_tf32()

  auto operator<=>(const LibraryProduct&) const = default;
};

/// Multiplies with the library that half_products() names; not defined for the emulation. Takes
/// float and double operands if multiplies_faster(). Does not wait for the device. Throws Error
/// (usage or out_of_memory) for an error of the library.
void multiply(const LibraryProduct& product, const void* a, const void* b, void* c);

/// Returns true if multiply() should multiply float or double operands in place of Kokkos Kernels.
/// `terms` is m n k.
bool multiplies_faster(DType operands, Trans trans_b, Size terms);

}  // namespace tessera::detail
