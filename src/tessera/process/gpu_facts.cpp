// SPDX-License-Identifier: Apache-2.0
// What CUDA says about GPUs, in a file of its own, for which tests put another one.
#include <Kokkos_Core.hpp>
#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/process/gpu.hpp>

#ifdef KOKKOS_ENABLE_CUDA
#include <dlfcn.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace {

template <class Call>
Call* driver_call(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  return driver == nullptr ? nullptr : reinterpret_cast<Call*>(dlsym(driver, name));
}

}  // namespace

// All that Kokkos calls of the CUDA driver, passed on to it: a program that is linked to the driver
// does not start where there is none, as on login nodes.
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  const auto call = driver_call<decltype(cuStreamGetCtx)>("cuStreamGetCtx");
  return call == nullptr ? CUDA_ERROR_NOT_FOUND : call(stream, context);
}
CUresult cuCtxPushCurrent(CUcontext context) {
  const auto call = driver_call<decltype(cuCtxPushCurrent)>("cuCtxPushCurrent_v2");
  return call == nullptr ? CUDA_ERROR_NOT_FOUND : call(context);
}
CUresult cuCtxGetDevice(CUdevice* device) {
  const auto call = driver_call<decltype(cuCtxGetDevice)>("cuCtxGetDevice");
  return call == nullptr ? CUDA_ERROR_NOT_FOUND : call(device);
}

namespace tessera {

std::optional<int> visible_devices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::string device_identity(int device) {
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) {
    throw Error(ExitCode::usage, "GPU {} is not responding", device);
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

void use_own_gpu() { static_cast<void>(cudaSetDevice(Kokkos::device_id())); }

}  // namespace tessera

#else

namespace tessera {

std::optional<int> visible_devices() { return std::nullopt; }
std::string device_identity(int) { return ""; }
std::string device_name(int) { return ""; }
void use_own_gpu() {}

}  // namespace tessera

#endif
