// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>

#include <tessera/base/types.hpp>
#include <tessera/process/kokkos_start.hpp>

namespace tessera {

/// The GPU that Kokkos uses in this process.
struct Gpu {
  int index = 0;         ///< among the GPUs that the process sees
  std::string identity;  ///< its UUID: tells GPUs, and slices of one GPU, apart
  std::string name;
};
/// Returns nothing if Tessera was built without CUDA. Throws Error (usage) if the GPU does not
/// respond.
std::optional<Gpu> own_gpu();

/// Returns the number of GPUs that this process sees; nothing if Tessera was built without CUDA.
std::optional<int> visible_gpus();

/// Makes the calling thread use the GPU of Kokkos: a new thread uses the first GPU otherwise. Does
/// nothing if Tessera was built without CUDA.
void use_own_gpu();

/// Locks host memory in place, which makes copies between it and the GPU several times faster.
/// Returns false if Tessera was built without CUDA, or if the system refuses. unpin() unlocks it.
bool pin(void* memory, Size bytes);
void unpin(void* memory);

/// Throws Error (usage) if this process sees no GPU, or not the one that the user asked for.
void check_gpus(int visible, const std::optional<AskedNumber>& asked);

/// Returns an error message if two ranks of a node use the same GPU. `identities[i]` is the GPU of
/// the node's rank i.
std::optional<std::string> shared_gpu_error(std::span<const std::string> identities);

/// Returns the largest number of ranks that share one GPU. `gpus[i]` identifies the GPU of rank i.
Size ranks_per_gpu(std::span<const std::string> gpus);

}  // namespace tessera
