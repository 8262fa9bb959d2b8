// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tessera/nn/models/models.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera::plan_test {

/// The tutorial on a mesh of these axes.
inline PlanInput tutorial(std::vector<Axis> axes = {{"data", 4}}) {
  PlanInput input;
  input.model = mlp({.widths = {4, 64, 1}});
  input.mesh = MeshShape(std::move(axes));
  input.global_batch = 32;
  input.samples = 256;
  return input;
}

inline PlanInput sharded(PlanInput input, Strategy strategy) {
  input.strategy = strategy;
  return input;
}

/// The actions of a step, those of each microbatch by themselves.
inline std::vector<Action> every_action(const StagePlan& stage) {
  std::vector<Action> all;
  for_each_action(stage.actions, stage.repeated, [&](std::size_t number, Size microbatch) {
    all.push_back(on_microbatch(stage.actions[number], microbatch));
  });
  return all;
}

/// The actions of a step, separated by spaces. Of the names of layers only the number stays, with p
/// for the product and o for the output: "forward(1p) forward(1o)".
inline std::string schedule(const PlanInput& input) {
  const Plan plan = make_plan(input);
  std::string text;
  for (const Action& action : every_action(plan.stages.front()))
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

inline PlanInput tutorial_on(Size ranks) { return tutorial({{"data", ranks}}); }

/// Layers of 20, 12 and 21 parameters: 80, 48 and 84 bytes in float32.
inline ModelSpec three_layers() { return mlp({.widths = {3, 5, 2, 7}}); }

}  // namespace tessera::plan_test
