// SPDX-License-Identifier: Apache-2.0
#include <tessera/nn/products/chain_kernel.hpp>

#if defined(__AVX2__) && !defined(__CUDACC__)

namespace tessera::detail {

template <class T>
ChainKernels<T> avx2_kernels() {
  return {multiply_tile<T>, transpose<T>};
}
template ChainKernels<float> avx2_kernels();
template ChainKernels<double> avx2_kernels();

}  // namespace tessera::detail

#endif
