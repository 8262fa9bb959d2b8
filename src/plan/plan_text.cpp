// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <iterator>
#include <tuple>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/mesh/mesh_layout.hpp>
#include <tessera/mesh/partition_spec.hpp>
#include <tessera/plan/plan_text.hpp>
#include <tessera/plan/rank_groups.hpp>

namespace tessera {
namespace {

/// The lines of a memory plan, in the order in which they are shown.
struct MemoryRow {
  const char* name;
  Size MemoryPlan::*bytes;
};
constexpr std::array<MemoryRow, 7> memory_rows{{
    {"parameters", &MemoryPlan::parameters},
    {"gradients", &MemoryPlan::gradients},
    {"moments", &MemoryPlan::moments},
    {"activations", &MemoryPlan::activations},
    {"scratch", &MemoryPlan::scratch},
    {"sums", &MemoryPlan::sums},
    {"data", &MemoryPlan::data},
}};

/// Memory differs between ranks by their rows only.
std::vector<RankGroup<std::array<Size, 2>>> memory_groups(const Plan& plan) {
  return group_ranks<std::array<Size, 2>>(plan.input.mesh.num_ranks(), [&](Size rank) {
    return std::array<Size, 2>{plan.microbatch_rows(rank, 0).count, plan.data_rows(rank)};
  });
}

std::vector<RankGroup<Shape>> shape_groups(const Plan& plan, const TensorPlan& tensor) {
  const MeshShape& mesh = plan.input.mesh;
  return group_ranks<Shape>(mesh.num_ranks(), [&](Size rank) {
    return local_block(tensor.shape, tensor.placements, mesh, rank).extent;
  });
}

/// Tensors of equal shape and placement have the same local shapes: they are worked out once.
class LocalShapes {
 public:
  explicit LocalShapes(const Plan& plan) : plan_(plan) {}
  const std::vector<RankGroup<Shape>>& of(const TensorPlan& tensor) {
    for (const auto& [shape, placements, groups] : known_)
      if (shape == tensor.shape && placements == tensor.placements) return groups;
    known_.emplace_back(tensor.shape, tensor.placements, shape_groups(plan_, tensor));
    return std::get<2>(known_.back());
  }

 private:
  const Plan& plan_;
  std::vector<std::tuple<Shape, Placements, std::vector<RankGroup<Shape>>>> known_;
};

std::string spec_of(const Plan& plan, const TensorPlan& tensor) {
  return to_partition_spec(tensor.placements, plan.input.mesh, tensor.shape.size()).to_string();
}

void write_mesh(std::string& out, const Plan& plan) {
  fmt::format_to(std::back_inserter(out), "Mesh {} ({} rank{}), strategy {}\n{}",
                 plan.input.mesh.to_string(), plan.input.mesh.num_ranks(),
                 plan.input.mesh.num_ranks() == 1 ? "" : "s", name_of(plan.input.strategy),
                 layout_text(plan.input.mesh));
}

void write_tensors(std::string& out, const Plan& plan) {
  fmt::format_to(
      std::back_inserter(out), "\nTensors of a microbatch ({})\n{:<12} {:<25} {:<14} {:<18} {}\n",
      name_of(plan.input.dtype), "  role", "path", "global shape", "PartitionSpec", "local shape");
  LocalShapes local_shapes(plan);
  for (const TensorPlan& tensor : plan.tensors) {
    std::string local;
    for (const RankGroup<Shape>& group : local_shapes.of(tensor)) {
      if (!local.empty()) local += "; ";
      local += to_string(group.value) + " on " +
               describe_ranks(group.ranks, plan.input.mesh.num_ranks());
    }
    fmt::format_to(std::back_inserter(out), "  {:<10} {:<25} {:<14} {:<18} {}\n",
                   name_of(tensor.role), tensor.path, to_string(tensor.shape),
                   spec_of(plan, tensor), local);
  }
}

void write_memory(std::string& out, const Plan& plan) {
  out += "\nMemory per rank\n";
  for (const auto& group : memory_groups(plan)) {
    const MemoryPlan memory = plan.memory(group.ranks.front());
    fmt::format_to(std::back_inserter(out), "  {}: {}\n",
                   describe_ranks(group.ranks, plan.input.mesh.num_ranks()),
                   human_bytes(memory.total()));
    for (const MemoryRow& row : memory_rows)
      if (const Size bytes = memory.*row.bytes; bytes > 0)
        fmt::format_to(std::back_inserter(out), "    {:<12} {:>16} B\n", row.name,
                       with_thousands(bytes));
  }
}

void write_collectives(std::string& out, const Plan& plan) {
  out += "\nCollectives, on every rank\n";
  if (plan.collectives.empty()) out += "  none\n";
  for (const CollectivePlan& c : plan.collectives)
    fmt::format_to(std::back_inserter(out), "  per {:<6} {:<8} {:<15} {:>3} call{} {:>14} B  {}\n",
                   name_of(c.cadence), c.axis, name_of(c.operation), c.calls,
                   c.calls == 1 ? " " : "s", with_thousands(c.payload_bytes), c.what);
}

void write_schedule(std::string& out, const Plan& plan) {
  out += "\nSchedule of a step\n ";
  std::size_t column = 1;
  for (const Action& action : plan.actions) {
    const std::string text = " " + to_string(action, plan.input.microbatches > 1);
    if (column + text.size() > 100) {
      out += "\n ";
      column = 1;
    }
    out += text;
    column += text.size();
  }
  out += "\n";
}

}  // namespace

std::string to_text(const Plan& plan) {
  std::string out;
  write_mesh(out, plan);
  write_tensors(out, plan);
  write_memory(out, plan);
  write_collectives(out, plan);
  write_schedule(out, plan);
  fmt::format_to(
      std::back_inserter(out),
      "\nSteps of an epoch: {}\nFLOPs of a step, all ranks: {} (forward {}, backward {})\n",
      plan.steps_per_epoch(), with_thousands(plan.flops.total()),
      with_thousands(plan.flops.forward), with_thousands(plan.flops.backward));
  return out;
}

nlohmann::json to_json(const Plan& plan) {
  using nlohmann::json;
  const Size num_ranks = plan.input.mesh.num_ranks();
  json tensors = json::array();
  LocalShapes local_shapes(plan);
  for (const TensorPlan& tensor : plan.tensors) {
    json local = json::array();
    for (const RankGroup<Shape>& group : local_shapes.of(tensor))
      local.push_back({{"shape", group.value}, {"ranks", number_ranges(group.ranks)}});
    tensors.push_back({{"path", tensor.path},
                       {"role", name_of(tensor.role)},
                       {"shape", tensor.shape},
                       {"spec", spec_of(plan, tensor)},
                       {"local", local}});
  }
  json memory = json::array();
  for (const auto& group : memory_groups(plan)) {
    const MemoryPlan of_group = plan.memory(group.ranks.front());
    json bytes = {{"total", of_group.total()}};
    for (const MemoryRow& row : memory_rows) bytes[row.name] = of_group.*row.bytes;
    memory.push_back({{"ranks", number_ranges(group.ranks)}, {"bytes", bytes}});
  }
  json collectives = json::array();
  for (const CollectivePlan& c : plan.collectives)
    collectives.push_back({{"axis", c.axis},
                           {"operation", name_of(c.operation)},
                           {"calls", c.calls},
                           {"payload_bytes", c.payload_bytes},
                           {"cadence", name_of(c.cadence)},
                           {"what", c.what}});
  json actions = json::array();
  for (const Action& action : plan.actions)
    actions.push_back({{"kind", name_of(action.kind)},
                       {"index", action.index},
                       {"microbatch", action.microbatch}});
  return {{"mesh", mesh_info(plan.input.mesh)},
          {"num_ranks", num_ranks},
          {"strategy", name_of(plan.input.strategy)},
          {"dtype", name_of(plan.input.dtype)},
          {"parameters", plan.input.model.num_parameters()},
          {"steps_per_epoch", plan.steps_per_epoch()},
          {"tensors", tensors},
          {"memory", memory},
          {"collectives", collectives},
          {"actions", actions},
          {"flops", {{"forward", plan.flops.forward}, {"backward", plan.flops.backward}}}};
}

}  // namespace tessera
