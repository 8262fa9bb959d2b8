// SPDX-License-Identifier: Apache-2.0
// The library that moves the bytes of device Views. MPI always moves host Views and messages with
// tags.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <tessera/base/names.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

enum class Backend : std::uint8_t { automatic, mpi, nccl };
template <>
inline constexpr std::array<std::string_view, 3> names_of<Backend>{"auto", "mpi", "nccl"};

/// Returns the version of NCCL, such as "2.28.3"; nothing if Tessera was built without it.
std::optional<std::string> nccl_version();

/// The facts that decide between MPI and NCCL, the same on all ranks.
struct BackendFacts {
  bool has_nccl = false;
  bool has_cuda = false;   ///< Kokkos' device is a CUDA device
  Size ranks_per_gpu = 0;  ///< the largest number of ranks that share a GPU; 0 without CUDA
};
/// Returns the facts of this launch. Collective over all ranks.
BackendFacts backend_facts();

struct BackendChoice {
  Backend backend = Backend::mpi;  ///< never automatic
  std::string reason;
};
/// Chooses NCCL if it works, unless `asked` names MPI. Throws ConfigError (distributed.backend) if
/// `asked` names NCCL and it does not work.
BackendChoice choose_backend(Backend asked, const BackendFacts& facts);

/// Returns the fields of the provenance: {"nccl_version": "2.28.3" or null, "message_backend":
/// "nccl (every rank has a GPU of its own)"}.
nlohmann::json message_library(const BackendChoice& choice);

}  // namespace tessera
