// SPDX-License-Identifier: Apache-2.0
// Builds without a library for half-precision products use this file.
#include <tessera/base/error.hpp>
#include <tessera/nn/products/library_product.hpp>

namespace tessera {

HalfProducts half_products(DType) { return HalfProducts::emulated; }

bool has_native_tf32() { return false; }

bool detail::multiplies_faster(DType, Trans, Size) { return false; }

void detail::multiply(const LibraryProduct&, const void*, const void*, void*) {
  throw Error(ExitCode::usage, "gemm: this build has no library for 16-bit products");
}

}  // namespace tessera
