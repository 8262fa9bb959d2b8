// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/text.hpp>
#include <tessera/comm/rank_list.hpp>

namespace tessera {

std::string rank_list(std::span<const int> ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + number_ranges(ranks, 3);
}

}  // namespace tessera
