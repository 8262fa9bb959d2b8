// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/action_text.hpp>
#include <tessera/plan/checkpoint_plan.hpp>
#include <tessera/plan/plan_parts.hpp>
#include <tessera/plan/plan_text.hpp>
#include <tessera/tensor/mesh_layout.hpp>

namespace tessera {
namespace {

/// Returns a count as an integer if all integers up to it are exact in a double.
nlohmann::json whole(double count) {
  if (count < 0x1p53) return static_cast<Size>(count);
  return count;
}

nlohmann::json tensors_json(const Plan& plan) {
  nlohmann::json tensors = nlohmann::json::array();
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage)
    for (const Slot& tensor : plan.stages[stage].slots) {
      nlohmann::json local = nlohmann::json::array();
      const GroupedRanks<LocalPart> parts = parts_of(plan, static_cast<Size>(stage), tensor);
      for (const RankGroup<LocalPart>& group : parts.groups) {
        local.push_back(
            {{"shape", group.value.shape}, {"ranks", parts.boxes.number_ranges(group.boxes)}});
        if (tensor.in_shares) local.back()["kept_elements"] = group.value.kept;
      }
      tensors.push_back({{"path", tensor.path},
                         {"role", name_of(tensor.role)},
                         {"shape", tensor.shape},
                         {"spec", spec_of(plan, tensor)},
                         {"dtype", name_of(tensor.type)},
                         {"stage", stage},
                         {"local", local}});
      if (tensor.in_shares) tensors.back()["shares_over"] = shares_over(plan, tensor.experts > 0);
    }
  return tensors;
}

nlohmann::json memory_json(const Plan& plan, const AlikeRanks& alike) {
  nlohmann::json memory = nlohmann::json::array();
  for (const RankBoxes::Group& ranks : alike.groups) {
    const MemoryPlan of_group = plan.memory(alike.first_rank(ranks));
    nlohmann::json bytes = {{"total", of_group.total()}};
    for (const MemoryRow& row : memory_rows) bytes[row.name] = of_group.*row.bytes;
    memory.push_back({{"ranks", alike.boxes.number_ranges(ranks)}, {"bytes", bytes}});
  }
  return memory;
}

nlohmann::json collectives_json(const Plan& plan, const Topology& topology,
                                const AlikeRanks& alike) {
  nlohmann::json collectives = nlohmann::json::array();
  for (const CallGroup& group : group_calls(plan, alike))
    for (const CollectivePlan& c : group.calls) {
      collectives.push_back({{"ranks", alike.boxes.number_ranges(group.ranks)},
                             {"axis", c.axis},
                             {"operation", name_of(c.operation)},
                             {"calls", c.calls},
                             {"payload_bytes", c.payload_bytes},
                             {"cadence", name_of(c.cadence)},
                             {"what", c.what}});
      if (topology.is_known()) collectives.back()["across_nodes"] = crosses(plan, topology, c.axis);
    }
  return collectives;
}

nlohmann::json checkpoint_json(const Plan& plan) {
  nlohmann::json bytes = nlohmann::json::array();
  if (!plan.input.writes_checkpoints) return bytes;
  const GroupedRanks<CheckpointBytes> grouped = group_checkpoint_bytes(plan);
  for (const RankGroup<CheckpointBytes>& group : grouped.groups)
    bytes.push_back({{"ranks", grouped.boxes.number_ranges(group.boxes)},
                     {"written_bytes", group.value.written},
                     {"read_bytes", group.value.read}});
  return bytes;
}

nlohmann::json traffic_json(const Plan& plan, const Topology& topology) {
  nlohmann::json calls = nlohmann::json::array();
  for (const LedgerRow& row : step_traffic(plan)) {
    calls.push_back({{"axis", row.axis},
                     {"operation", name_of(row.operation)},
                     {"calls", row.calls},
                     {"payload_bytes", row.payload_bytes}});
    if (topology.is_known()) calls.back()["across_nodes"] = crosses(plan, topology, row.axis);
  }
  return calls;
}

nlohmann::json actions_json(const Plan& plan) {
  nlohmann::json actions = nlohmann::json::array();
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage)
    list_actions(plan.stages[stage], [&](const ListedAction& listed, Size times) {
      actions.push_back({{"kind", name_of(listed.action)},
                         {"text", to_string(listed, plan, plan.stages[stage])},
                         {"stage", stage},
                         {"microbatch", listed.microbatch}});
      if (times > 1) actions.back()["microbatches"] = times;
    });
  return actions;
}

}  // namespace

nlohmann::json to_json(const Plan& plan, const Topology& topology, PlanParts parts) {
  const AlikeRanks alike = ranks_alike(plan);
  nlohmann::json document = {{"mesh", mesh_info(plan.input.mesh)},
                             {"num_ranks", plan.input.mesh.num_ranks()},
                             {"nodes", nodes_json(topology, plan.input.mesh)},
                             {"strategy", name_of(plan.input.strategy)},
                             {"device", name_of(plan.input.device)},
                             {"dtype", name_of(plan.input.compute_type)},
                             {"state_dtype", name_of(plan.input.state_type)},
                             {"emulates_products", plan.input.emulates_products},
                             {"parameters", plan.input.model.num_parameters()},
                             {"steps_per_epoch", plan.steps_per_epoch()},
                             {"memory", memory_json(plan, alike)},
                             {"traffic_of_rank_0", traffic_json(plan, topology)},
                             {"flops",
                              {{"forward", whole(plan.flops.forward)},
                               {"backward", whole(plan.flops.backward)},
                               {"recomputed", whole(plan.recomputed)}}}};
  if (parts.tensors) document["tensors"] = tensors_json(plan);
  if (parts.calls) {
    document["collectives"] = collectives_json(plan, topology, alike);
    document["checkpoint"] = checkpoint_json(plan);
  }
  if (parts.schedule) document["actions"] = actions_json(plan);
  return document;
}

}  // namespace tessera
