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

/// Returns "every rank", "rank 3" or "ranks 0-2,5" for ascending `ranks`. A long list ends with
/// "..." and the number of ranks.
std::string describe_ranks(const std::vector<int>& ranks, Size num_ranks);

/// Boxes of ranks, grouped by a value.
template <class Value>
struct GroupedRanks {
  RankBoxes boxes;
  std::vector<RankGroup<Value>> groups;
};

/// The local part of one tensor.
struct LocalPart {
  Shape shape;    ///< the rank's block
  Size kept = 0;  ///< elements of the block that the rank keeps between steps
  friend auto operator<=>(const LocalPart&, const LocalPart&) = default;
  // nvcc declares the operator that <=> implies and does not define it.
  friend bool operator==(const LocalPart&, const LocalPart&) = default;
};

/// Returns the local parts of a tensor on the ranks of a stage.
GroupedRanks<LocalPart> parts_of(const Plan& plan, Size stage, const Slot& slot);

/// Classes of coordinates along `model` with equal extents of layers and of tensors in the frame.
/// There are few classes for any number of ranks: part i of n items is larger where i < n mod
/// ranks, and nothing else depends on i.
class ModelParts {
 public:
  explicit ModelParts(const Plan& plan) : plan_(plan) {}

  /// Returns the class of a rank. Ranks of one stage with equal numbers of samples and equal
  /// extents have the same class.
  Size operator()(Size rank);
  /// Returns the coordinates where a new class begins, ascending, for ranks with so many samples.
  const std::vector<Size>& bounds(Size stage, Size samples);

 private:
  std::vector<Size> find_bounds(const StagePlan& stage, Size samples) const;

  const Plan& plan_;
  std::map<std::pair<Size, Size>, std::vector<Size>> bounds_;  ///< key: stage and samples
};

/// Returns a key of a rank's memory and calls. Ranks with equal keys have equal memory and calls.
class MemoryAndCalls {
 public:
  explicit MemoryAndCalls(const Plan& plan);
  std::vector<Size> operator()(Size rank);

 private:
  const Plan& plan_;
  ModelParts parts_;
  std::vector<char> by_coordinate_;  ///< by stage: calls depend on the coordinate along `model`
};

/// Groups of ranks with equal memory and calls. The first rank of a group represents it.
struct AlikeRanks {
  RankBoxes boxes;
  std::vector<RankBoxes::Group> groups;
  Size first_rank(const RankBoxes::Group& group) const { return boxes.first_rank(group.front()); }
};
AlikeRanks ranks_alike(const Plan& plan);

/// Groups ranks by the bytes that they write to and read from a checkpoint.
GroupedRanks<CheckpointBytes> group_checkpoint_bytes(const Plan& plan);

/// Returns boxes of ranks with equal samples, layers and shares of buckets. With `parameters`,
/// their shares of each parameter are equal as well.
RankBoxes equal_ranks(const Plan& plan, bool parameters);

}  // namespace tessera
