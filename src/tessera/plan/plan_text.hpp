// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <tessera/plan/plan.hpp>

namespace tessera {

/// The parts of a plan that are long for a large model.
struct PlanParts {
  bool tensors = false;   ///< global shape, PartitionSpec and local shapes of every tensor
  bool calls = false;     ///< calls of every rank by purpose, and bytes of checkpoints
  bool schedule = false;  ///< the actions of a step, and the timeline of a pipeline
  static constexpr PlanParts all() { return {true, true, true}; }
};

/// Returns the plan as text: the mesh as a grid of ranks; parameters and FLOPs; memory of the ranks
/// that need most; the bytes that rank 0 sends along each axis; and the parts asked for, in which
/// equal layers share a line. If `topology` tells the nodes, the text marks the axes and calls that
/// cross nodes.
std::string to_text(const Plan& plan, const Topology& topology = 0, PlanParts parts = {});

/// Returns the plan as JSON: memory of every rank, and the parts asked for, in full. Ranks with
/// equal values share one entry: {"ranks": "0-2", ...}.
nlohmann::json to_json(const Plan& plan, const Topology& topology = 0, PlanParts parts = {});

}  // namespace tessera
