// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tessera/nn/models/models.hpp>
#include <tessera/plan/action_text.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera::plan_test {

/// Returns the tutorial on a mesh of these axes.
inline PlanInput tutorial(std::vector<Axis> axes = {{"data", 4}}) {
  PlanInput input;
  input.model = mlp({.widths = {4, 64, 1}});
  input.mesh = MeshShape(std::move(axes));
  input.batch_size = 32;
  input.samples = 256;
  return input;
}

inline PlanInput sharded(PlanInput input, Strategy strategy) {
  input.strategy = strategy;
  return input;
}

/// Returns the input with every strategy, and once more if it can shard moments wider.
inline std::vector<PlanInput> with_each_strategy(const PlanInput& input) {
  std::vector<PlanInput> all;
  for (std::size_t s = 0; s < strategies.size(); ++s) {
    all.push_back(sharded(input, static_cast<Strategy>(s)));
    if (!strategies[s].over_fsdp_only || input.mesh.size_of("fsdp") == 1) continue;
    all.push_back(all.back());
    for (const std::size_t axis : batch_axes(input.mesh))
      all.back().shard_moments_over.push_back(input.mesh.axes()[axis].name);
  }
  return all;
}

/// Returns the actions of a step with each repetition listed.
inline std::vector<ListedAction> every_action(const StagePlan& stage) {
  std::vector<ListedAction> all;
  for_each_action(stage.actions, stage.repeated, [&](std::size_t number, Size microbatch) {
    all.push_back({stage.actions[number].action, microbatch});
  });
  return all;
}

/// Returns the planned traffic of a run on a rank: "data all_reduce 1 x, 1540 B; ...".
inline std::string calls_of(const PlanInput& input, PlannedRun run = {.steps = 1}, Size rank = 0) {
  const Plan plan = make_plan(input);
  run.plan = &plan;
  std::string text;
  for (const LedgerRow& row : planned_traffic({run}, rank))
    text += (text.empty() ? "" : "; ") + row.axis + " " + std::string(name_of(row.operation)) +
            " " + std::to_string(row.calls) + " x, " + std::to_string(row.payload_bytes) + " B";
  return text;
}

/// Returns the actions of a step, separated by spaces. Names of layers are shortened to a number
/// and p for the product or o for the output: "forward(1p) forward(1o)".
inline std::string schedule(const PlanInput& input) {
  const Plan plan = make_plan(input);
  std::string text;
  for (const ListedAction& action : every_action(plan.stages.front()))
    text += (text.empty() ? "" : " ") + to_string(action, plan, plan.stages.front());
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at))
      text.replace(at, from.size(), to);
  };
  replace("layer", "");
  replace("/product", "p");
  replace("/output", "o");
  return text;
}

/// Returns layers of 20, 12 and 21 parameters: 80, 48 and 84 bytes in float32.
inline ModelSpec three_layers() { return mlp({.widths = {3, 5, 2, 7}}); }

/// Returns three_layers() on `ranks` ranks.
inline PlanInput three_on(const std::string& mesh, Size ranks, Strategy strategy) {
  PlanInput input = tutorial();
  input.model = three_layers();
  input.mesh = MeshShape::parse(mesh, ranks);
  input.strategy = strategy;
  return input;
}

}  // namespace tessera::plan_test
