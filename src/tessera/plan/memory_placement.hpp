// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// Memory that is needed during some steps of a list.
struct Storage {
  Size bytes = 0;
  Range alive;      ///< steps, from the first to behind the last
  Size offset = 0;  ///< where it has been put
};

/// Puts each storage at an offset that is a multiple of 64 bytes, so that those alive at the same
/// time do not overlap; returns the size of all. The largest first, each at the lowest place that
/// is free for as long as it lives.
Size place_in_memory(std::vector<Storage>& storages);

}  // namespace tessera
