// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/action_text.hpp>
#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/plan/plan_document.hpp>
#include <tessera/tensor/mesh_layout.hpp>
#include <tessera/tensor/partition_spec.hpp>

namespace tessera {
namespace {

using nlohmann::json;

/// Returns a count as an integer if all integers up to it are exact in a double.
json whole(double count) {
  if (count < 0x1p53) return static_cast<Size>(count);
  return count;
}

/// Returns the PartitionSpec, with " of a sum" if ranks have terms of it.
std::string spec_of(const Plan& plan, const Slot& tensor) {
  Placements placements = tensor.placements;
  for (Placement& placement : placements)
    if (placement.is_partial()) placement = Placement::replicate();
  const std::string spec =
      to_partition_spec(placements, plan.input.mesh, tensor.shape.size()).to_string();
  return placements == tensor.placements ? spec : spec + " of a sum";
}

/// Lists the parts of a document. Ranks with equal values share an entry.
class DocumentParts {
 public:
  DocumentParts(const Plan& plan, const Topology& topology, RanksText ranks_text)
      : plan_(plan), topology_(topology), ranks_text_(ranks_text), alike_(group_alike(plan)) {}

  json memory() const {
    const auto entry = [](const MemoryPlan& memory) {
      return json{{"bytes", memory_json(memory)}};
    };
    return by_ranks(joined(alike_, [&](Size rank) { return plan_.memory(rank); }), entry);
  }

  json tensors() const {
    json all = json::array();
    for (std::size_t stage = 0; stage < plan_.stages.size(); ++stage)
      for (const Slot& slot : plan_.stages[stage].slots) {
        if (slot.piece_of != no_slot) continue;
        const auto entry = [&](const LocalPart& part) {
          json local{{"shape", part.shape}};
          if (slot.held != Held::whole) local["kept_elements"] = part.kept;
          return local;
        };
        all.push_back(
            {{"path", slot.path},
             {"role", name_of(slot.role)},
             {"shape", slot.shape},
             {"spec", spec_of(plan_, slot)},
             {"dtype", name_of(slot.type)},
             {"stage", stage},
             {"local", by_ranks(group_parts(plan_, static_cast<Size>(stage), slot), entry)}});
        if (slot.held == Held::whole) continue;
        const ParameterLayout& layout = plan_.stages[stage].parameters;
        const BucketPlan& of = layout.buckets[layout.parameters[slot.parameter].bucket];
        all.back()["shares_over"] = plan_.input.mesh.group_name(of.axes(slot.held));
      }
    return all;
  }

  json collectives() const {
    json all = json::array();
    const auto groups = joined(alike_, [&](Size rank) { return plan_.collectives(rank); });
    for (const auto& [calls, classes] : groups.groups)
      for (const CollectivePlan& c : calls)
        add_call(all, c.axis,
                 {{"ranks", (groups.ranks.*ranks_text_)(classes)},
                  {"axis", c.axis},
                  {"operation", name_of(c.operation)},
                  {"calls", c.calls},
                  {"payload_bytes", c.payload_bytes},
                  {"cadence", name_of(c.cadence)},
                  {"what", c.what}});
    return all;
  }

  json traffic() const {
    json all = json::array();
    for (const LedgerRow& row : step_traffic(plan_)) add_call(all, row.axis, row);
    return all;
  }

  json checkpoint() const {
    if (!plan_.input.writes_checkpoints) return json::array();
    return by_ranks(group_checkpoint_bytes(plan_), [](const CheckpointBytes& bytes) {
      return json{{"written_bytes", bytes.written}, {"read_bytes", bytes.read}};
    });
  }

  json actions() const {
    json all = json::array();
    for (std::size_t number = 0; number < plan_.stages.size(); ++number) {
      const StagePlan& stage = plan_.stages[number];
      const Repetition& repeated = stage.repeated;
      const Size times = repeated.times > most_listed ? repeated.times : 1;
      for_each_action(stage.actions,
                      {repeated.actions, repeated.times / times, repeated.before, repeated.period},
                      [&](std::size_t at, Size microbatch) {
                        const Action& action = stage.actions[at].action;
                        all.push_back({{"kind", name_of(action)},
                                       {"text", to_string({action, microbatch}, plan_, stage)},
                                       {"stage", number},
                                       {"microbatch", microbatch}});
                        if (times > 1 && repeated.holds(static_cast<Size>(at)))
                          all.back()["microbatches"] = times;
                      });
    }
    return all;
  }

 private:
  template <class Value, class Entry>
  json by_ranks(const RankGroups<Value>& groups, const Entry& entry) const {
    json all = json::array();
    for (const auto& [value, classes] : groups.groups) {
      all.push_back(entry(value));
      all.back()["ranks"] = (groups.ranks.*ranks_text_)(classes);
    }
    return all;
  }

  /// Adds a call, and whether it crosses nodes if they are known.
  void add_call(json& calls, const std::string& axis, json call) const {
    if (topology_.is_known())
      call["across_nodes"] = !topology_.stays_inside(plan_.input.mesh, axis);
    calls.push_back(std::move(call));
  }

  const Plan& plan_;
  const Topology& topology_;
  RanksText ranks_text_;
  RankGroups<std::vector<Size>> alike_;  ///< ranks with equal memory and calls
};

}  // namespace

json memory_json(const MemoryPlan& memory) {
  json bytes{{"total", memory.total()}};
  for (const MemoryRow& row : memory_rows) bytes[row.name] = memory.*row.bytes;
  return bytes;
}

json plan_document(const Plan& plan, const Topology& topology, PlanParts parts,
                   RanksText ranks_text) {
  const DocumentParts document(plan, topology, ranks_text);
  json all = {{"mesh", mesh_info(plan.input.mesh)},
              {"num_ranks", plan.input.mesh.num_ranks()},
              {"nodes", nodes_json(topology, plan.input.mesh)},
              {"strategy", name_of(plan.input.strategy)},
              {"device", name_of(plan.input.traits.device)},
              {"dtype", name_of(plan.input.compute_type)},
              {"state_dtype", name_of(plan.input.state_type)},
              {"emulates_products", plan.input.emulates_products()},
              {"parameters", plan.input.model.num_parameters()},
              {"steps_per_epoch", plan.steps_per_epoch()},
              {"memory", document.memory()},
              {"traffic_of_rank_0", document.traffic()},
              {"flops",
               {{"forward", whole(plan.flops.forward)},
                {"backward", whole(plan.flops.backward)},
                {"recomputed", whole(plan.recomputed)}}},
              {"recomputed_layers", json::object()}};
  for (const auto& [kind, layers] : plan.recomputed_layers)
    all["recomputed_layers"][std::string(kind)] = layers;
  if (plan.orthogonalization > 0) all["flops"]["muon"] = whole(plan.orthogonalization);
  if (parts.tensors) all["tensors"] = document.tensors();
  if (parts.calls) {
    all["collectives"] = document.collectives();
    all["checkpoint"] = document.checkpoint();
  }
  if (parts.schedule) all["actions"] = document.actions();
  return all;
}

json to_json(const Plan& plan, const Topology& topology, PlanParts parts) {
  return plan_document(plan, topology, parts, &RankClasses::number_ranges);
}

}  // namespace tessera
