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
  Size instances = 1;  ///< microbatches alive at a time; microbatch m uses instance m mod instances
  Size stride = 0;     ///< bytes from one instance to the next
};

/// Places storages so that those that are alive at the same time do not overlap. Offsets and
/// strides are multiples of 64 bytes. Places the largest storage first, each at the lowest free
/// offset. Returns the total size in bytes.
Size place_in_memory(std::vector<Storage>& storages);

}  // namespace tessera
