// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/mesh/mesh_layout.hpp>
#include <tessera/mesh/partition_spec.hpp>
#include <tessera/plan/checkpoint_plan.hpp>
#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/plan/pipeline/pipeline_timeline.hpp>
#include <tessera/plan/plan_text.hpp>

namespace tessera {
namespace {

/// Returns a count as an integer if all integers up to it are exact in a double.
nlohmann::json whole(double count) {
  if (count < 0x1p53) return static_cast<Size>(count);
  return count;
}

std::string count_text(double count) {
  return count < 0x1p53 ? with_thousands(static_cast<Size>(count)) : fmt::format("{:.4g}", count);
}

std::string spec_of(const Plan& plan, const Slot& tensor) {
  Placements placements = tensor.placements;
  for (Placement& placement : placements)
    if (placement.is_partial()) placement = Placement::replicate();
  const std::string spec =
      to_partition_spec(placements, plan.input.mesh, tensor.shape.size()).to_string();
  return placements == tensor.placements ? spec : spec + " of a sum";
}

/// Returns the axes over which buckets, or those of experts, are sharded.
std::string shares_over(const Plan& plan, bool of_experts) {
  const RankSet ranks = of_experts ? RankSet::expert_shard : RankSet::shard;
  return plan.input.mesh.group_name(axes_of(ranks, plan.input));
}

/// Returns a text such as "layer1/product to layer2/output", joined for all chunks of the stage.
std::string layers_text(const Plan& plan, const StagePlan& stage) {
  std::vector<std::string> chunks;
  for (const Range& layers : stage.chunks)
    chunks.push_back(fmt::format("{} to {}", plan.input.model.layers[layers.begin].name,
                                 plan.input.model.layers[layers.end() - 1].name));
  return join(chunks);
}

std::string part_text(const Slot& tensor, const LocalPart& part) {
  if (!tensor.in_shares) return to_string(part.shape);
  return fmt::format("{} of {}", part.kept, to_string(part.shape));
}

/// Calls, and the boxes of ranks that make them.
struct CallGroup {
  std::vector<CollectivePlan> calls;
  RankBoxes::Group ranks;
};

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

void write_mesh(std::string& out, const Plan& plan, const Topology& topology) {
  out += fmt::format(
      "Mesh {} ({}{}), strategy {}\n{}", plan.input.mesh.to_string(),
      counted(plan.input.mesh.num_ranks(), "rank"),
      plan.input.threads > 0 ? fmt::format(" of {}", counted(plan.input.threads, "thread")) : "",
      name_of(plan.input.strategy),
      layout_text(plan.input.mesh) + nodes_line(topology, plan.input.mesh));
}

std::string types_text(const PlanInput& input) {
  if (!input.has_copies()) return std::string(name_of(input.compute_type));
  return fmt::format(
      "{}{}; parameters, gradients, moments and sums {}", name_of(input.compute_type),
      input.emulates_products ? ", products emulated" : "", name_of(input.state_type));
}

void write_tensors(std::string& out, const Plan& plan) {
  out += fmt::format("\nTensors of a microbatch ({})\n{:<12} {:<25} {:<14} {:<18} {}\n",
                     types_text(plan.input), "  role", "path", "global shape", "PartitionSpec",
                     "local shape");
  bool in_shares = false;
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    if (plan.stages.size() > 1)
      out += fmt::format(" stage {}: {}\n", stage, layers_text(plan, plan.stages[stage]));
    for (const Slot& tensor : plan.stages[stage].slots) {
      std::string local;
      const GroupedRanks<LocalPart> parts = parts_of(plan, static_cast<Size>(stage), tensor);
      for (const RankGroup<LocalPart>& group : parts.groups) {
        if (!local.empty()) local += "; ";
        local += part_text(tensor, group.value) + " on " + parts.boxes.describe(group.boxes);
      }
      out += fmt::format("  {:<10} {:<25} {:<14} {:<18} {}\n", name_of(tensor.role), tensor.path,
                         to_string(tensor.shape), spec_of(plan, tensor), local);
      in_shares = in_shares || tensor.in_shares;
    }
  }
  if (in_shares)
    out += fmt::format(
        "  \"n of (...)\": a rank keeps n elements of its block, those in its share of "
        "the flat bucket over {}{}\n",
        shares_over(plan, false),
        plan.input.mesh.size_of("expert") > 1 ? ", those of experts without expert" : "");
}

void write_memory(std::string& out, const Plan& plan, const AlikeRanks& alike) {
  out += "\nMemory per rank\n";
  for (const RankBoxes::Group& ranks : alike.groups) {
    const MemoryPlan memory = plan.memory(alike.first_rank(ranks));
    out += fmt::format("  {}: {}\n", alike.boxes.describe(ranks), human_bytes(memory.total()));
    for (const MemoryRow& row : memory_rows)
      if (const Size bytes = memory.*row.bytes; bytes > 0)
        out += fmt::format("    {:<15} {:>16} B\n", row.name, with_thousands(bytes));
  }
}

/// Writes what a fixed order of sums adds to the step of the first rank.
void write_numerics(std::string& out, const Plan& plan) {
  const Numerics& numerics = plan.input.numerics;
  if (!numerics.reproducible) return;
  PlanInput input = plan.input;
  input.numerics.reproducible = false;
  const Plan ordinary = make_plan(input);
  out += fmt::format(
      "\nSums in a fixed order: {} of the batch, {} of what model may split\n"
      "  rank 0 needs {:+} B of memory and sends {:+} B per step, compared with any order\n",
      counted(numerics.grains, "grain"), counted(numerics.model_grains, "grain"),
      plan.memory(0).total() - ordinary.memory(0).total(), step_bytes(plan) - step_bytes(ordinary));
}

/// Returns true if a call is known to cross nodes.
bool crosses(const Plan& plan, const Topology& topology, const CollectivePlan& call) {
  return topology.is_known() && !topology.stays_inside(plan.input.mesh, call.axis);
}

void write_collectives(std::string& out, const Plan& plan, const Topology& topology,
                       const AlikeRanks& alike) {
  for (const CallGroup& group : group_calls(plan, alike)) {
    out += fmt::format("\nCollectives, on {}\n", alike.boxes.describe(group.ranks));
    if (group.calls.empty()) out += "  none\n";
    for (const CollectivePlan& c : group.calls)
      out += fmt::format("  per {:<6} {:<8} {:<15} {:>3} call{} {:>14} B  {}{}\n",
                         name_of(c.cadence), c.axis, name_of(c.operation), c.calls,
                         c.calls == 1 ? " " : "s", with_thousands(c.payload_bytes), c.what,
                         crosses(plan, topology, c) ? ", across nodes" : "");
  }
}

void write_checkpoint_bytes(std::string& out, const Plan& plan) {
  if (!plan.input.writes_checkpoints) return;
  out += "\nCheckpoint bytes per rank\n";
  const GroupedRanks<CheckpointBytes> bytes = group_checkpoint_bytes(plan);
  for (const RankGroup<CheckpointBytes>& group : bytes.groups)
    out += fmt::format("  {}: {} B written, {} B read\n", bytes.boxes.describe(group.boxes),
                       with_thousands(group.value.written), with_thousands(group.value.read));
}

/// Writes the timeline of the pipeline for backward passes that take twice as long as forward
/// passes, and messages that take no time.
void write_pipeline(std::string& out, const Plan& plan) {
  const PipelineShape shape = plan.input.pipeline();
  if (shape.stages == 1) return;
  const PassLists passes = order_passes(shape);
  const PipelineTimeline timeline = time_passes(passes, shape, {});
  out += fmt::format(
      "\nPipeline, schedule {}: bubble {:.1f} % if backward takes twice as long as "
      "forward\n{}",
      name_of(shape.schedule), 100 * timeline.bubble, draw(timeline, shape));
  out += "  microbatches whose activations each stage keeps at once:";
  for (const std::vector<StagePass>& stage : passes)
    out += fmt::format(" {}", peak_live(stage, shape.schedule));
  out += "\n";
}

/// Up to this number, repeated microbatches are listed one by one. Beyond it, the first one stands
/// for all.
constexpr Size most_listed = 64;

/// Calls write(action, times) for the actions of a step in order. The action stands for `times`
/// equal microbatches.
template <class Write>
void list_actions(const StagePlan& stage, const Write& write) {
  const Repetition& repeated = stage.repeated;
  const bool is_short = repeated.times > most_listed;
  const Size times = is_short ? repeated.times : 1;
  for_each_action(stage.actions, {repeated.actions, repeated.times / times, repeated.before},
                  [&](std::size_t number, Size microbatch) {
                    const auto at = static_cast<Size>(number);
                    write(on_microbatch(stage.actions[number], microbatch),
                          at >= repeated.before && at < repeated.end() ? times : 1);
                  });
}

void write_schedule(std::string& out, const Plan& plan, const StagePlan& stage) {
  out += "\n ";
  std::size_t column = 1;
  const auto write = [&](const std::string& text) {
    if (column + text.size() > 100) {
      out += "\n ";
      column = 1;
    }
    out += text;
    column += text.size();
  };
  Size pending = 1;  // times of the previous action
  list_actions(stage, [&](const Action& action, Size times) {
    if (times < pending) write(fmt::format(" (the same for m1 to m{})", pending - 1));
    pending = times;
    write(fmt::format(" {}", to_string(action, plan, stage)));
  });
  out += "\n";
}

}  // namespace

std::string to_text(const Plan& plan, const Topology& topology) {
  std::string out;
  const AlikeRanks alike = ranks_alike(plan);
  write_mesh(out, plan, topology);
  write_tensors(out, plan);
  write_memory(out, plan, alike);
  write_numerics(out, plan);
  write_collectives(out, plan, topology, alike);
  write_checkpoint_bytes(out, plan);
  write_pipeline(out, plan);
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    out += "\nSchedule of a step";
    if (plan.stages.size() > 1) out += fmt::format(", stage {}", stage);
    write_schedule(out, plan, plan.stages[stage]);
  }
  out += fmt::format(
      "\nSteps per epoch: {}\nFLOPs per step, all ranks: {} (forward {}, backward {}){}\n",
      plan.steps_per_epoch(), count_text(plan.flops.total()), count_text(plan.flops.forward),
      count_text(plan.flops.backward),
      plan.recomputed == 0 ? "" : fmt::format(", plus {} recomputed", count_text(plan.recomputed)));
  if (const std::vector<PassCount> flops = plan.flops_along_context(); flops.size() > 1) {
    out += "FLOPs per step by coordinate of context:";
    for (const PassCount& part : flops) out += " " + count_text(part.total());
    out += "\n";
  }
  return out;
}

namespace {

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
      if (topology.is_known()) collectives.back()["across_nodes"] = crosses(plan, topology, c);
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

}  // namespace

nlohmann::json to_json(const Plan& plan, const Topology& topology) {
  const AlikeRanks alike = ranks_alike(plan);
  nlohmann::json actions = nlohmann::json::array();
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage)
    list_actions(plan.stages[stage], [&](const Action& action, Size times) {
      actions.push_back({{"kind", name_of(action)},
                         {"text", to_string(action, plan, plan.stages[stage])},
                         {"stage", stage},
                         {"microbatch", action.microbatch}});
      if (times > 1) actions.back()["microbatches"] = times;
    });
  return {{"mesh", mesh_info(plan.input.mesh)},
          {"num_ranks", plan.input.mesh.num_ranks()},
          {"nodes", nodes_json(topology, plan.input.mesh)},
          {"strategy", name_of(plan.input.strategy)},
          {"device", name_of(plan.input.device)},
          {"dtype", name_of(plan.input.compute_type)},
          {"state_dtype", name_of(plan.input.state_type)},
          {"emulates_products", plan.input.emulates_products},
          {"parameters", plan.input.model.num_parameters()},
          {"steps_per_epoch", plan.steps_per_epoch()},
          {"tensors", tensors_json(plan)},
          {"memory", memory_json(plan, alike)},
          {"collectives", collectives_json(plan, topology, alike)},
          {"checkpoint", checkpoint_json(plan)},
          {"actions", actions},
          {"flops",
           {{"forward", whole(plan.flops.forward)},
            {"backward", whole(plan.flops.backward)},
            {"recomputed", whole(plan.recomputed)}}}};
}

}  // namespace tessera
