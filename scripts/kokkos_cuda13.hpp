// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parameters that three functions of the CUDA runtime had before CUDA 13, for a Kokkos that
// still calls them so. scripts/kokkos.sh makes Kokkos' compiler wrapper include it first.

#include <cuda_runtime_api.h>

#if CUDART_VERSION >= 13000
namespace tessera_cuda13 {

inline cudaMemLocation location(int device) {
  cudaMemLocation place{};
  place.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  place.id = device;
  return place;
}

}  // namespace tessera_cuda13

inline cudaError_t cudaMemAdvise(const void* memory, size_t bytes, cudaMemoryAdvise advice,
                                 int device) {
  return cudaMemAdvise(memory, bytes, advice, tessera_cuda13::location(device));
}

inline cudaError_t cudaMemPrefetchAsync(const void* memory, size_t bytes, int device,
                                        cudaStream_t stream) {
  return cudaMemPrefetchAsync(memory, bytes, tessera_cuda13::location(device), 0, stream);
}

inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                            const cudaGraphNode_t* to, size_t count) {
  return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}
#endif
