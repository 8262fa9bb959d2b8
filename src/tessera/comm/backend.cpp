// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <vector>

#include <Kokkos_Core.hpp>
#include <fmt/format.h>
#include <mpi.h>

#include <tessera/base/error.hpp>
#include <tessera/base/gpu.hpp>
#include <tessera/base/host_info.hpp>
#include <tessera/base/mpi_error.hpp>
#include <tessera/base/share_text.hpp>
#include <tessera/comm/backend.hpp>

namespace tessera {

BackendFacts backend_facts() {
  BackendFacts facts;
  facts.has_nccl = nccl_version().has_value();
#ifdef KOKKOS_ENABLE_CUDA
  facts.has_cuda = true;
#endif
  if (!facts.has_nccl || !facts.has_cuda || !mpi_is_running()) return facts;
  const std::vector<std::string> gpus =
      gather_texts(MPI_COMM_WORLD, host_name() + " " + device_identity(Kokkos::device_id()));
  facts.has_own_gpu = std::set(gpus.begin(), gpus.end()).size() == gpus.size();
  return facts;
}

BackendChoice choose_backend(Backend asked, const BackendFacts& facts) {
  if (asked == Backend::mpi) return {Backend::mpi, "asked for"};
  const char* const obstacle = !facts.has_nccl      ? "this build has no NCCL"
                               : !facts.has_cuda    ? "Kokkos has no CUDA device in this build"
                               : !facts.has_own_gpu ? "ranks share a GPU, which NCCL does not allow"
                                                    : nullptr;
  if (asked == Backend::nccl) {
    if (obstacle == nullptr) return {Backend::nccl, "asked for"};
    throw ConfigError("distributed.backend", "nccl",
                      std::string(obstacle) + "; must be auto or mpi");
  }
  if (obstacle != nullptr) return {Backend::mpi, obstacle};
  return {Backend::nccl, "every rank has a GPU of its own"};
}

MessageLibrary message_library(const BackendChoice& choice) {
  return {nccl_version(), fmt::format("{} ({})", name_of(choice.backend), choice.reason)};
}

}  // namespace tessera
