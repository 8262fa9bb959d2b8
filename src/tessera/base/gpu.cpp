// SPDX-License-Identifier: Apache-2.0
#include <Kokkos_Core.hpp>
#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/gpu.hpp>

#ifdef KOKKOS_ENABLE_CUDA
#include <cuda_runtime_api.h>
#endif

namespace tessera {

int device_of_rank(int local_rank, int visible_devices) {
  if (visible_devices < 1) {
    throw Error(ExitCode::usage, fmt::format("rank {} of the node sees no GPU", local_rank));
  }
  return local_rank % visible_devices;
}

std::optional<std::string> shared_device_error(std::span<const std::string> devices) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (devices[i] != devices[j]) continue;
      return fmt::format(
          "ranks {} and {} of a node with {} ranks share one GPU: start one rank per GPU, or allow "
          "it with TESSERA_ALLOW_SHARED_GPU=1",
          j, i, devices.size());
    }
  }
  return std::nullopt;
}

#ifdef KOKKOS_ENABLE_CUDA

int visible_devices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::string device_identity(int device) {
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) {
    throw Error(ExitCode::usage, fmt::format("GPU {} is not responding", device));
  }
  std::string identity;
  for (const char byte : properties.uuid.bytes) {
    identity += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return identity;
}

std::string device_name(int device) {
  cudaDeviceProp properties;
  return cudaGetDeviceProperties(&properties, device) == cudaSuccess ? properties.name : "";
}

#else

int visible_devices() { return 0; }
std::string device_identity(int) { return ""; }
std::string device_name(int) { return ""; }

#endif

}  // namespace tessera
