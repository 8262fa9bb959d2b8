// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/text.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// Ranks with equal values, first rank first: what to print of 100,000 ranks.
template <class Value>
struct RankGroup {
  Value value;
  std::vector<int> ranks;
};

template <class Value, class OfRank>
std::vector<RankGroup<Value>> group_ranks(Size num_ranks, const OfRank& of_rank) {
  std::vector<RankGroup<Value>> groups;
  std::map<Value, std::size_t> index;
  for (Size rank = 0; rank < num_ranks; ++rank) {
    const Value value = of_rank(rank);
    const auto [at, is_new] = index.try_emplace(value, groups.size());
    if (is_new) groups.push_back({value, {}});
    groups[at->second].ranks.push_back(static_cast<int>(rank));
  }
  return groups;
}

/// "every rank", "rank 3", "ranks 0-2,5".
inline std::string describe_ranks(const std::vector<int>& ranks, Size num_ranks) {
  if (static_cast<Size>(ranks.size()) == num_ranks) return "every rank";
  return (ranks.size() == 1 ? "rank " : "ranks ") + number_ranges(ranks);
}

}  // namespace tessera
