// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include <tessera/comm/rank_list.hpp>

namespace tessera {

std::string rank_list(std::span<const int> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (i > 0) text += ',';
    text += std::to_string(ranks[i]);
    if (last > i) text += (last == i + 1 ? ',' : '-') + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace tessera
