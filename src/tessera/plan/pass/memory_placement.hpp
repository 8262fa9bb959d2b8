// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// Memory that every microbatch needs during some positions of a list.
struct Storage {
  Size bytes = 0;
  /// The positions in which it is used, by microbatch of the list. Ranges that begin later end
  /// later.
  std::vector<Range> alive{};
  Size offset = 0;  ///< bytes from the begin of the frame; set by place_in_memory()
  Size copies = 1;  ///< most microbatches alive at a time; microbatch m uses copy m mod copies
  Size stride = 0;  ///< bytes from one copy to the next
};

/// Gives each storage an offset that is a multiple of 64 bytes, so that storages that are alive at
/// the same time do not overlap. Places the largest first, each at the lowest free offset. Returns
/// the total size in bytes.
Size place_in_memory(std::vector<Storage>& storages);

}  // namespace tessera
