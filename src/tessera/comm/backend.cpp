// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/comm/backend.hpp>

namespace tessera {

BackendChoice choose_backend(Backend asked, const BackendFacts& facts) {
  if (asked == Backend::mpi) return {Backend::mpi, "asked for"};
  const char* const obstacle = !facts.has_cuda   ? "Kokkos has no CUDA device in this build"
                               : !facts.has_nccl ? "this build does not include NCCL"
                               : facts.ranks_per_gpu != 1
                                   ? "ranks share a GPU, which NCCL does not allow"
                                   : nullptr;
  if (asked == Backend::nccl) {
    if (obstacle == nullptr) return {Backend::nccl, "asked for"};
    throw ConfigError("distributed.backend", "nccl",
                      std::string(obstacle) + "; must be auto or mpi");
  }
  if (obstacle != nullptr) return {Backend::mpi, obstacle};
  return {Backend::nccl, "every rank has a GPU of its own"};
}

nlohmann::json message_library(const BackendChoice& choice) {
  const std::optional<std::string> nccl = nccl_version();
  return {{"nccl_version", nccl ? nlohmann::json(*nccl) : nlohmann::json()},
          {"message_backend", fmt::format("{} ({})", name_of(choice.backend), choice.reason)}};
}

}  // namespace tessera
