// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/types.hpp>
#include <tessera/plan/checkpoint_plan.hpp>
#include <tessera/plan/layout/rank_boxes.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// "every rank", "rank 3", "ranks 0-2,5"; of many ranges the first ones and the number of ranks.
/// `ranks`: ascending.
std::string describe_ranks(const std::vector<int>& ranks, Size num_ranks);

/// Groups of the ranks that boxes hold.
template <class Value>
struct GroupedRanks {
  RankBoxes boxes;
  std::vector<RankGroup<Value>> groups;
};

/// What a rank holds of one tensor.
struct LocalPart {
  Shape shape;    ///< its block
  Size kept = 0;  ///< elements of the block that it keeps between steps
  friend auto operator<=>(const LocalPart&, const LocalPart&) = default;
  // nvcc declares the one that follows from <=> and does not define it.
  friend bool operator==(const LocalPart&, const LocalPart&) = default;
};

/// What the ranks of a stage hold of one of its tensors.
GroupedRanks<LocalPart> parts_of(const Plan& plan, Size stage, const Slot& slot);

/// Tells apart what coordinates along `model` give to ranks: the extents of their layers and of
/// their tensors in the frame. There are few different ones, however many ranks the axis has: part
/// i of n items is larger where i < n mod ranks, and nothing else depends on i.
class ModelParts {
 public:
  explicit ModelParts(const Plan& plan) : plan_(plan) {}

  /// Equal for ranks of one stage with as many samples that have equal extents.
  Size operator()(Size rank);
  /// The coordinates, in order, from which on a part is smaller, of ranks with so many samples.
  const std::vector<Size>& bounds(Size stage, Size samples);

 private:
  std::vector<Size> find_bounds(const StagePlan& stage, Size samples) const;

  const Plan& plan_;
  std::map<std::pair<Size, Size>, std::vector<Size>> bounds_;  ///< by stage and samples
};

/// Describes a rank's memory and calls by numbers that are equal for ranks that are alike.
class MemoryAndCalls {
 public:
  explicit MemoryAndCalls(const Plan& plan);
  std::vector<Size> operator()(Size rank);

 private:
  const Plan& plan_;
  ModelParts parts_;
  std::vector<char> by_coordinate_;  ///< of each stage: calls depend on the place along `model`
};

/// Ranks that need the same memory and make the same calls: any of them speaks for its group.
struct AlikeRanks {
  RankBoxes boxes;
  std::vector<RankBoxes::Group> groups;
  Size first_rank(const RankBoxes::Group& group) const { return boxes.first_rank(group.front()); }
};
AlikeRanks ranks_alike(const Plan& plan);

/// Groups ranks by the bytes that they move between their memory and a checkpoint.
GroupedRanks<CheckpointBytes> group_checkpoint_bytes(const Plan& plan);

/// Boxes of ranks with equal samples, layers and shares of buckets. With `parameters`, their shares
/// of each parameter are equal as well.
RankBoxes equal_ranks(const Plan& plan, bool parameters);

}  // namespace tessera
