// SPDX-License-Identifier: Apache-2.0
#include <tessera/nn/products/chain_kernel.hpp>

#if defined(__AVX2__)

namespace tessera::detail {

template <class T>
void chain_avx2(const ChainTile<T>& tile) {
  multiply_tile(tile);
}
template void chain_avx2(const ChainTile<float>&);
template void chain_avx2(const ChainTile<double>&);

}  // namespace tessera::detail

#endif
