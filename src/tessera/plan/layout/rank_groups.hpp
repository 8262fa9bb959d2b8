// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/types.hpp>
#include <tessera/plan/checkpoint_plan.hpp>
#include <tessera/plan/layout/rank_classes.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// The local part of one tensor.
struct LocalPart {
  Shape shape;    ///< the rank's piece
  Size kept = 0;  ///< elements of the piece that the rank keeps between steps
  auto operator<=>(const LocalPart&) const = default;
};

/// Groups the ranks of a stage by their parts of one of its tensors.
RankGroups<LocalPart> group_parts(const Plan& plan, Size stage, const Slot& slot);

/// Returns groups of ranks with equal memory and calls. The value of a group is what determines
/// them: classes of coordinates, numbers of samples, and sizes of the parts of buckets.
/// `with_norm`: ranks of a group also count equally many elements in the norm of the gradient, so
/// that they do equal work.
RankGroups<std::vector<Size>> group_alike(const Plan& plan, bool with_norm = false);

/// Device memory of the rank that needs most, the lowest of several.
struct LargestMemory {
  Size rank = 0;
  MemoryPlan memory;
};
LargestMemory largest_memory(const Plan& plan);

/// Groups ranks by the bytes that they write to and read from a checkpoint.
RankGroups<CheckpointBytes> group_checkpoint_bytes(const Plan& plan);

}  // namespace tessera
