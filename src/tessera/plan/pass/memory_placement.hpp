// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// Memory that each microbatch needs during a part of the list of a step's actions. Microbatches
/// that need it at the same time use different instances of it.
struct Storage {
  Size bytes = 0;  ///< of one instance
  /// Positions in the list from the first to the last use, by microbatch. Ranges that begin later
  /// end later.
  std::vector<Range> alive{};
  // Set by place_in_memory():
  Size offset = 0;     ///< bytes from the start of the frame to the first instance
  Size instances = 1;  ///< at least the microbatches that are alive at a time
  Size stride = 0;     ///< bytes from one instance to the next
  Size shift = 0;      ///< microbatch m uses instance (m + shift) mod instances
  /// Returns the bytes from the start of the frame to the instance of a microbatch.
  Size place(Size microbatch) const { return offset + (microbatch + shift) % instances * stride; }
};

/// Places storages so that those that are alive at the same time do not overlap. Offsets and
/// strides are multiples of 64 bytes. Places the largest storage first, each at the lowest free
/// offset. Returns the total size in bytes. With `group`, microbatches pass several chunks in
/// groups of so many. Then each chunk has its most microbatches alive at another time, and two
/// storages whose microbatches take turns use the same instances.
Size place_in_memory(std::vector<Storage>& storages, Size group = 0);

}  // namespace tessera
