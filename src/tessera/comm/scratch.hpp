// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>

namespace tessera {

/// A non-blocking reduce-scatter in host memory uses pairwise messages if its full buffer has at
/// least this many bytes per rank.
inline constexpr Size started_in_pairs_from = 256;

/// Returns the elements of scratch that `Communicator::ireduce_scatter` of `count` elements over
/// `ranks` ranks needs on a rank with `share` elements: room for the share of every other rank, or
/// 0 for a short call. Calls in device memory do not use it.
constexpr Size reduce_scatter_scratch(Size count, Size share, Size ranks, DType type) {
  return count * size_of(type) >= started_in_pairs_from * ranks ? (ranks - 1) * share : 0;
}

}  // namespace tessera
