// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/plan_document.hpp>
#include <tessera/tensor/mesh_layout.hpp>

namespace tessera {
namespace {

/// Returns a count as an integer if all integers up to it are exact in a double.
nlohmann::json whole(double count) {
  if (count < 0x1p53) return static_cast<Size>(count);
  return count;
}

nlohmann::json tensors_json(const PlanDocument& document) {
  nlohmann::json tensors = nlohmann::json::array();
  for (std::size_t stage = 0; stage < document.stages.size(); ++stage)
    for (const PlanDocument::Tensor& tensor : document.stages[stage].tensors) {
      nlohmann::json local = nlohmann::json::array();
      for (const auto& [part, classes] : tensor.local.groups) {
        local.push_back(
            {{"shape", part.shape}, {"ranks", tensor.local.ranks.number_ranges(classes)}});
        if (tensor.slot->in_shares) local.back()["kept_elements"] = part.kept;
      }
      tensors.push_back({{"path", tensor.slot->path},
                         {"role", name_of(tensor.slot->role)},
                         {"shape", tensor.slot->shape},
                         {"spec", tensor.spec},
                         {"dtype", name_of(tensor.slot->type)},
                         {"stage", stage},
                         {"local", local}});
      if (tensor.slot->in_shares) tensors.back()["shares_over"] = tensor.shares_over;
    }
  return tensors;
}

nlohmann::json memory_json(const PlanDocument& document) {
  nlohmann::json memory = nlohmann::json::array();
  for (const auto& [of_each, classes] : document.memory.groups) {
    nlohmann::json bytes = {{"total", of_each.total()}};
    for (const MemoryRow& row : memory_rows) bytes[row.name] = of_each.*row.bytes;
    memory.push_back({{"ranks", document.memory.ranks.number_ranges(classes)}, {"bytes", bytes}});
  }
  return memory;
}

nlohmann::json collectives_json(const PlanDocument& document) {
  nlohmann::json collectives = nlohmann::json::array();
  for (const auto& [calls, classes] : document.calls->groups)
    for (const CollectivePlan& c : calls) {
      collectives.push_back({{"ranks", document.calls->ranks.number_ranges(classes)},
                             {"axis", c.axis},
                             {"operation", name_of(c.operation)},
                             {"calls", c.calls},
                             {"payload_bytes", c.payload_bytes},
                             {"cadence", name_of(c.cadence)},
                             {"what", c.what}});
      if (document.topology.is_known())
        collectives.back()["across_nodes"] = document.crosses(c.axis);
    }
  return collectives;
}

nlohmann::json checkpoint_json(const PlanDocument& document) {
  nlohmann::json bytes = nlohmann::json::array();
  if (!document.checkpoint) return bytes;
  for (const auto& [of_each, classes] : document.checkpoint->groups)
    bytes.push_back({{"ranks", document.checkpoint->ranks.number_ranges(classes)},
                     {"written_bytes", of_each.written},
                     {"read_bytes", of_each.read}});
  return bytes;
}

nlohmann::json traffic_json(const PlanDocument& document) {
  nlohmann::json calls = nlohmann::json::array();
  for (const LedgerRow& row : document.traffic) {
    calls.push_back(row);
    if (document.topology.is_known()) calls.back()["across_nodes"] = document.crosses(row.axis);
  }
  return calls;
}

nlohmann::json actions_json(const PlanDocument& document) {
  nlohmann::json actions = nlohmann::json::array();
  for (std::size_t stage = 0; stage < document.stages.size(); ++stage)
    for (const PlanDocument::Entry& entry : document.stages[stage].actions) {
      actions.push_back({{"kind", entry.name},
                         {"text", entry.text},
                         {"stage", stage},
                         {"microbatch", entry.microbatch}});
      if (entry.times > 1) actions.back()["microbatches"] = entry.times;
    }
  return actions;
}

}  // namespace

nlohmann::json to_json(const Plan& plan, const Topology& topology, PlanParts parts) {
  const PlanDocument document(plan, topology, parts);
  nlohmann::json json = {{"mesh", mesh_info(plan.input.mesh)},
                         {"num_ranks", plan.input.mesh.num_ranks()},
                         {"nodes", nodes_json(topology, plan.input.mesh)},
                         {"strategy", name_of(plan.input.strategy)},
                         {"device", name_of(plan.input.device)},
                         {"dtype", name_of(plan.input.compute_type)},
                         {"state_dtype", name_of(plan.input.state_type)},
                         {"emulates_products", plan.input.emulates_products},
                         {"parameters", plan.input.model.num_parameters()},
                         {"steps_per_epoch", plan.steps_per_epoch()},
                         {"memory", memory_json(document)},
                         {"traffic_of_rank_0", traffic_json(document)},
                         {"flops",
                          {{"forward", whole(plan.flops.forward)},
                           {"backward", whole(plan.flops.backward)},
                           {"recomputed", whole(plan.recomputed)}}}};
  if (parts.tensors) json["tensors"] = tensors_json(document);
  if (parts.calls) {
    json["collectives"] = collectives_json(document);
    json["checkpoint"] = checkpoint_json(document);
  }
  if (parts.schedule) json["actions"] = actions_json(document);
  return json;
}

}  // namespace tessera
