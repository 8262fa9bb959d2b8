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

/// Boxes of ranks, grouped by a value.
template <class Value>
struct GroupedRanks {
  RankBoxes boxes;
  std::vector<RankGroup<Value>> groups;
};

/// The local part of one tensor.
struct LocalPart {
  Shape shape;    ///< the rank's piece
  Size kept = 0;  ///< elements of the piece that the rank keeps between steps
  friend auto operator<=>(const LocalPart&, const LocalPart&) = default;
  // nvcc declares the operator that <=> implies and does not define it.
  friend bool operator==(const LocalPart&, const LocalPart&) = default;
};

/// Returns the local parts of a tensor of `stage`, grouped by their value, on the ranks of the
/// stage.
GroupedRanks<LocalPart> parts_of(const Plan& plan, Size stage, const Slot& slot);

/// Classes of coordinates along `model`. Ranks of one class have layers and tensors in the frame
/// with equal extents. There are few classes for any number of ranks, because extents depend on the
/// coordinate i only through balanced splits: part i of n items is larger where i < n mod ranks.
class ModelClasses {
 public:
  explicit ModelClasses(const Plan& plan) : plan_(plan) {}

  /// Returns the number of the rank's class. Compare it only with ranks of the same stage and with
  /// the same number of samples.
  Size operator()(Size rank);
  /// Returns the coordinates at which a new class begins, ascending, for ranks of `stage` with
  /// `samples` samples of the batch.
  const std::vector<Size>& bounds(Size stage, Size samples);

 private:
  std::vector<Size> find_bounds(const StagePlan& stage, Size samples) const;

  const Plan& plan_;
  std::map<std::pair<Size, Size>, std::vector<Size>> bounds_;  ///< by stage and samples
};

/// Returns a key for a rank. Ranks with equal keys have equal memory and calls.
class MemoryAndCalls {
 public:
  explicit MemoryAndCalls(const Plan& plan);
  std::vector<Size> operator()(Size rank);

 private:
  const Plan& plan_;
  ModelClasses classes_;
  std::vector<char> by_coordinate_;  ///< by stage, true if calls depend on the model coordinate
};

/// All ranks, in groups with equal memory and calls. The first rank of a group represents it.
struct AlikeRanks {
  RankBoxes boxes;
  std::vector<RankBoxes::Group> groups;
  Size first_rank(const RankBoxes::Group& group) const { return boxes.first_rank(group.front()); }
};
AlikeRanks ranks_alike(const Plan& plan);

/// Returns the bytes of device memory of the rank that needs most.
Size most_memory(const Plan& plan);

/// Groups ranks by the bytes that they write to and read from a checkpoint.
GroupedRanks<CheckpointBytes> group_checkpoint_bytes(const Plan& plan);

/// Returns boxes of ranks. The ranks of a box have equal numbers of samples, extents of layers and
/// sizes of shares of buckets and, with `parameters`, equal sizes of shares of each parameter.
RankBoxes equal_ranks(const Plan& plan, bool parameters);

}  // namespace tessera
