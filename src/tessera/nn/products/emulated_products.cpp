// SPDX-License-Identifier: Apache-2.0
// Of builds without a library for 16-bit products.
#include <tessera/base/error.hpp>
#include <tessera/nn/products/short_product.hpp>

namespace tessera {

ShortProducts short_products(DType) { return ShortProducts::emulated; }

bool has_native_tf32() { return false; }

void detail::multiply(const ShortProduct&, const void*, const void*, void*) {
  throw Error(ExitCode::usage, "gemm: this build has no library for 16-bit products");
}

}  // namespace tessera
