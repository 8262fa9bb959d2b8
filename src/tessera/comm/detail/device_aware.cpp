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

Unfit unfit_for_mpi() {
#if defined(KOKKOS_ENABLE_CUDA) && defined(MPIX_CUDA_AWARE_SUPPORT)
  const bool is_aware = MPIX_Query_cuda_support() == 1;
#elif defined(KOKKOS_ENABLE_HIP) && defined(OMPI_HAVE_MPI_EXT_ROCM)
  const bool is_aware = MPIX_Query_rocm_support() == 1;
#elif defined(OPEN_MPI)
  const bool is_aware = false;
#else
  // Users switch this on in MPICH and Cray MPICH, which otherwise fail at once on device memory.
  const char* enabled = std::getenv("MPICH_GPU_SUPPORT_ENABLED");
  if (enabled == nullptr) enabled = std::getenv("MPIR_CVAR_ENABLE_GPU");
  const bool is_aware = enabled != nullptr && std::string_view(enabled) == "1";
#endif
  if (!is_aware) return Unfit::out_of_reach;
#ifdef OPEN_MPI
  // Open MPI moves device memory but adds on the host. Its non-blocking reductions, and those of
  // uneven shares, crash on device addresses (issues 9845 and 12045 of Open MPI).
  return Unfit::reductions;
#else
  return Unfit::none;
#endif
}

}  // namespace tessera
