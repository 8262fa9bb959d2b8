// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include <tessera/plan/plan_parts.hpp>
#include <tessera/tensor/partition_spec.hpp>

namespace tessera {

std::string spec_of(const Plan& plan, const Slot& tensor) {
  Placements placements = tensor.placements;
  for (Placement& placement : placements)
    if (placement.is_partial()) placement = Placement::replicate();
  const std::string spec =
      to_partition_spec(placements, plan.input.mesh, tensor.shape.size()).to_string();
  return placements == tensor.placements ? spec : spec + " of a sum";
}

std::string shares_over(const Plan& plan, bool of_experts) {
  const RankSet ranks = of_experts ? RankSet::expert_shard : RankSet::shard;
  return plan.input.mesh.group_name(axes_of(ranks, plan.input));
}

bool crosses(const Plan& plan, const Topology& topology, const std::string& axis) {
  return topology.is_known() && !topology.stays_inside(plan.input.mesh, axis);
}

std::vector<CallGroup> group_calls(const Plan& plan, const AlikeRanks& alike) {
  std::vector<CallGroup> groups;
  for (const RankBoxes::Group& ranks : alike.groups) {
    std::vector<CollectivePlan> calls = plan.collectives(alike.first_rank(ranks));
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const CallGroup& group) { return group.calls == calls; });
    if (same == groups.end()) {
      groups.push_back({std::move(calls), ranks});
      continue;
    }
    RankBoxes::Group all;
    std::merge(ranks.begin(), ranks.end(), same->ranks.begin(), same->ranks.end(),
               std::back_inserter(all));
    same->ranks = std::move(all);
  }
  return groups;
}

}  // namespace tessera
