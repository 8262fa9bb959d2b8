// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// Memory that every microbatch needs during some steps of a list, each for as long as it lives.
struct Storage {
  Size bytes = 0;
  /// Steps in which it is used, by microbatch of the list. Ranges that begin later end later.
  std::vector<Range> alive{};
  Size offset = 0;  ///< where it has been put
  Size copies = 1;  ///< as many as are alive at a time; microbatch m has copy m mod copies
  Size stride = 0;  ///< bytes from one copy to the next
};

/// Puts each storage at an offset that is a multiple of 64 bytes, so that those alive at the same
/// time do not overlap; returns the size of all. The largest first, each at the lowest place that
/// is free for as long as it lives.
Size place_in_memory(std::vector<Storage>& storages);

}  // namespace tessera
