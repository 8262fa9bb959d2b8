// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <tessera/base/types.hpp>

namespace tessera {

/// The GPU that Kokkos uses in this process.
struct Gpu {
  int index = 0;         ///< among the GPUs that the process sees
  std::string identity;  ///< its UUID: tells GPUs, and slices of one GPU, apart
  std::string board;     ///< its PCI address, which slices of one GPU share
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

}  // namespace tessera
