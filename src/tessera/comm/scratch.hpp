// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>

namespace tessera {

/// Bytes of a full buffer for each rank from which on a reduce-scatter that is only started goes in
/// pairs of messages, on memory that the host reaches.
inline constexpr Size started_in_pairs_from = 256;

/// Elements of scratch that `Communicator::ireduce_scatter` of `count` elements over `ranks` ranks
/// needs on a rank whose share is `share`: room for that share from every other rank, nothing where
/// the call is short. All of it is used on host memory; NCCL, and MPI on device memory, leave it
/// untouched.
constexpr Size reduce_scatter_scratch(Size count, Size share, Size ranks, DType type) {
  return count * size_of(type) >= started_in_pairs_from * ranks ? (ranks - 1) * share : 0;
}

}  // namespace tessera
