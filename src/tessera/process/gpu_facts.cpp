// SPDX-License-Identifier: Apache-2.0
// Everything that CUDA reports about GPUs. It is a file of its own so that tests can replace it.
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

// Kokkos calls these functions of the CUDA driver. A program that is linked to the driver does not
// start where there is none, for example on login nodes. These definitions load it when needed.
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

std::optional<int> visible_gpus() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::optional<Gpu> own_gpu() {
  const int index = Kokkos::device_id();
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, index) != cudaSuccess)
    throw Error(ExitCode::usage, "GPU {} is not responding", index);
  Gpu gpu{index, "",
          fmt::format("{:04x}:{:02x}:{:02x}", properties.pciDomainID, properties.pciBusID,
                      properties.pciDeviceID),
          properties.name};
  for (const char byte : properties.uuid.bytes)
    gpu.identity += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return gpu;
}

void use_own_gpu() { static_cast<void>(cudaSetDevice(Kokkos::device_id())); }

bool pin(void* memory, Size bytes) {
  const bool is_pinned = cudaHostRegister(memory, static_cast<std::size_t>(bytes),
                                          cudaHostRegisterDefault) == cudaSuccess;
  // Otherwise the next launch of a kernel would report the error.
  static_cast<void>(cudaGetLastError());
  return is_pinned;
}
void unpin(void* memory) { static_cast<void>(cudaHostUnregister(memory)); }

}  // namespace tessera

#else

namespace tessera {

std::optional<int> visible_gpus() { return std::nullopt; }
std::optional<Gpu> own_gpu() { return std::nullopt; }
void use_own_gpu() {}
bool pin(void*, Size) { return false; }
void unpin(void*) {}

}  // namespace tessera

#endif
