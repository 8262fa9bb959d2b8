// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/plan_text.hpp>

namespace tessera {

/// The part of a plan that users see: to_text() and to_json() render it. Ranks with equal values
/// share an entry. The plan must outlive the document.
struct PlanDocument {
  PlanDocument(const Plan& plan, const Topology& topology, PlanParts parts);

  struct Tensor {
    const Slot* slot;
    std::string spec;         ///< PartitionSpec, with " of a sum" if ranks have terms of it
    std::string shares_over;  ///< axes over which ranks share its elements; "" if they do not
    RankGroups<LocalPart> local;
  };
  /// Equal actions of `times` microbatches.
  struct Entry {
    std::string name, text;
    Size microbatch = 0, times = 1;
  };
  struct Stage {
    std::vector<Tensor> tensors;
    std::vector<Entry> actions;
  };

  /// Returns true if the calls along an axis are known to cross nodes.
  bool crosses(const std::string& axis) const {
    return topology.is_known() && !topology.stays_inside(plan.input.mesh, axis);
  }

  const Plan& plan;
  Topology topology;
  PlanParts parts;
  RankGroups<std::vector<Size>> alike;  ///< ranks with equal memory and calls
  RankGroups<MemoryPlan> memory;
  std::vector<LedgerRow> traffic;  ///< of rank 0 in a step
  std::vector<Stage> stages;       ///< tensors and actions, if they are among the parts
  // If calls are among the parts:
  std::optional<RankGroups<std::vector<CollectivePlan>>> calls{};
  std::optional<RankGroups<CheckpointBytes>> checkpoint{};  ///< none if no file is written
};

}  // namespace tessera
