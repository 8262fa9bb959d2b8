// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/action_text.hpp>
#include <tessera/plan/plan_document.hpp>
#include <tessera/tensor/partition_spec.hpp>

namespace tessera {
namespace {

std::string spec_of(const Plan& plan, const Slot& tensor) {
  Placements placements = tensor.placements;
  for (Placement& placement : placements)
    if (placement.is_partial()) placement = Placement::replicate();
  const std::string spec =
      to_partition_spec(placements, plan.input.mesh, tensor.shape.size()).to_string();
  return placements == tensor.placements ? spec : spec + " of a sum";
}

std::string shares_over(const Plan& plan, const Slot& tensor) {
  if (!tensor.in_shares) return "";
  const RankSet ranks = tensor.by_expert ? RankSet::expert_shard : RankSet::shard;
  return plan.input.mesh.group_name(axes_of(ranks, plan.input));
}

std::vector<PlanDocument::Tensor> tensors_of(const Plan& plan, Size stage) {
  std::vector<PlanDocument::Tensor> tensors;
  for (const Slot& slot : plan.stages[stage].slots)
    tensors.push_back(
        {&slot, spec_of(plan, slot), shares_over(plan, slot), group_parts(plan, stage, slot)});
  return tensors;
}

/// Up to this number, repeated microbatches are listed one by one. Beyond it, the first one stands
/// for all.
constexpr Size most_listed = 64;

std::vector<PlanDocument::Entry> actions_of(const Plan& plan, const StagePlan& stage) {
  std::vector<PlanDocument::Entry> entries;
  const Repetition& repeated = stage.repeated;
  const Size times = repeated.times > most_listed ? repeated.times : 1;
  for_each_action(
      stage.actions, {repeated.actions, repeated.times / times, repeated.before},
      [&](std::size_t number, Size microbatch) {
        const auto at = static_cast<Size>(number);
        const Action& action = stage.actions[number].action;
        const bool is_repeated = at >= repeated.before && at < repeated.end();
        entries.push_back({name_of(action), to_string({action, microbatch}, plan, stage),
                           microbatch, is_repeated ? times : 1});
      });
  return entries;
}

}  // namespace

PlanDocument::PlanDocument(const Plan& of, const Topology& nodes, PlanParts shown)
    : plan(of),
      topology(nodes),
      parts(shown),
      alike(group_alike(plan)),
      memory(joined(alike, [&](Size rank) { return plan.memory(rank); })),
      traffic(step_traffic(plan)),
      stages(plan.stages.size()) {
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (parts.tensors) stages[s].tensors = tensors_of(plan, static_cast<Size>(s));
    if (parts.schedule) stages[s].actions = actions_of(plan, plan.stages[s]);
  }
  if (!parts.calls) return;
  calls = joined(alike, [&](Size rank) { return plan.collectives(rank); });
  if (plan.input.writes_checkpoints) checkpoint = group_checkpoint_bytes(plan);
}

}  // namespace tessera
