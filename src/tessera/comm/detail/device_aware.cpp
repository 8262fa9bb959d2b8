// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string_view>

#include <Kokkos_Core.hpp>
#include <mpi.h>
#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <tessera/comm/detail/transport.hpp>

namespace tessera {

bool mpi_is_device_aware() {
#if defined(KOKKOS_ENABLE_CUDA) && defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() == 1;
#elif defined(KOKKOS_ENABLE_HIP) && defined(OMPI_HAVE_MPI_EXT_ROCM)
  return MPIX_Query_rocm_support() == 1;
#elif defined(OPEN_MPI)
  return false;
#else
  // MPICH and Cray MPICH are told by the user, and fail at once on device memory if they are not.
  const char* enabled = std::getenv("MPICH_GPU_SUPPORT_ENABLED");
  if (enabled == nullptr) enabled = std::getenv("MPIR_CVAR_ENABLE_GPU");
  return enabled != nullptr && std::string_view(enabled) == "1";
#endif
}

}  // namespace tessera
