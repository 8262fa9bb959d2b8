// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/types.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// Ranks with equal values, first rank first: what to print of 100,000 ranks.
template <class Value>
struct RankGroup {
  Value value;
  std::vector<int> ranks;
};

template <class Value, class OfRank>
std::vector<RankGroup<Value>> group_ranks(const std::vector<Size>& ranks, const OfRank& of_rank) {
  std::vector<RankGroup<Value>> groups;
  std::map<Value, std::size_t> index;
  std::size_t last = 0;  // neighbours are often alike
  for (const Size rank : ranks) {
    const Value value = of_rank(rank);
    if (groups.empty() || groups[last].value != value) {
      const auto [at, is_new] = index.try_emplace(value, groups.size());
      if (is_new) groups.push_back({value, {}});
      last = at->second;
    }
    groups[last].ranks.push_back(static_cast<int>(rank));
  }
  return groups;
}

/// "every rank", "rank 3", "ranks 0-2,5"; of many ranges the first ones and the number of ranks.
std::string describe_ranks(const std::vector<int>& ranks, Size num_ranks);

/// What a rank holds of one tensor.
struct LocalPart {
  Shape shape;    ///< its block
  Size kept = 0;  ///< elements of the block that it keeps between steps
  friend auto operator<=>(const LocalPart&, const LocalPart&) = default;
  // nvcc declares the one that follows from <=> and does not define it.
  friend bool operator==(const LocalPart&, const LocalPart&) = default;
};

/// What the ranks of a stage hold of one of its tensors.
std::vector<RankGroup<LocalPart>> parts_of(const Plan& plan, Size stage, const Slot& slot);

/// Groups of ranks that need the same memory and make the same calls: any of them speaks for all.
std::vector<std::vector<int>> ranks_alike(const Plan& plan);

/// Tells apart what coordinates along `model` give to ranks: the extents of their layers and of
/// their tensors in the frame. There are few different ones, however many ranks the axis has: part
/// i of n items is larger where i < n mod ranks, and nothing else depends on i.
class ModelParts {
 public:
  explicit ModelParts(const Plan& plan) : plan_(plan) {}

  /// Equal for ranks of one stage with as many samples that have equal extents.
  Size operator()(Size rank);

 private:
  std::vector<Size> bounds(const StagePlan& stage, Size samples) const;

  const Plan& plan_;
  /// By stage and samples: the coordinates, in order, from which on a part is smaller.
  std::map<std::pair<Size, Size>, std::vector<Size>> bounds_;
};

}  // namespace tessera
