// SPDX-License-Identifier: Apache-2.0
#include <tessera/nn/products/chain_kernel.hpp>

#if defined(__AVX512F__) && !defined(__CUDACC__)

namespace tessera::detail {

template <class T>
ChainKernels<T> avx512_kernels() {
  return {multiply_tile<T>, transpose<T>};
}
template ChainKernels<float> avx512_kernels();
template ChainKernels<double> avx512_kernels();

}  // namespace tessera::detail

#endif
