// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

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

/// The actions of a step, separated by spaces.
inline std::string schedule(const PlanInput& input) {
  std::string text;
  for (const Action& action : make_plan(input).actions)
    text += (text.empty() ? "" : " ") + to_string(action, input.microbatches > 1);
  return text;
}

inline PlanInput tutorial_on(Size ranks) { return tutorial({{"data", ranks}}); }

/// Layers of 20, 12 and 21 parameters: 80, 48 and 84 bytes in float32.
inline ModelSpec three_layers() { return mlp({.widths = {3, 5, 2, 7}}); }

}  // namespace tessera::plan_test
