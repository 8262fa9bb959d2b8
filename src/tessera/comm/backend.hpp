// SPDX-License-Identifier: Apache-2.0
// Which library moves the bytes of device Views. Host Views and messages with tags always go
// through MPI.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/base/names.hpp>
#include <tessera/base/types.hpp>
#include <tessera/process/provenance.hpp>

namespace tessera {

enum class Backend : std::uint8_t { automatic, mpi, nccl };
template <>
inline constexpr std::array<std::string_view, 3> names_of<Backend>{"auto", "mpi", "nccl"};

/// The NCCL that this library was built with, "2.28.3"; none if without.
std::optional<std::string> nccl_version();

/// What the choice depends on, the same on all ranks.
struct BackendFacts {
  bool has_nccl = false;
  bool has_cuda = false;   ///< Kokkos' device is a CUDA device
  Size ranks_per_gpu = 0;  ///< of the GPU that most ranks share; 0 without CUDA
};
/// Of this program and launch. Collective over all ranks.
BackendFacts backend_facts();

struct BackendChoice {
  Backend backend = Backend::mpi;  ///< never automatic
  std::string reason;
};
/// NCCL where it works, unless `asked` says otherwise. Throws ConfigError (distributed.backend) if
/// NCCL is asked for and does not work.
BackendChoice choose_backend(Backend asked, const BackendFacts& facts);

/// For the provenance: "nccl (every rank has a GPU of its own)".
MessageLibrary message_library(const BackendChoice& choice);

}  // namespace tessera
