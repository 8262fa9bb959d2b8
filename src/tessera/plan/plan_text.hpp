// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <tessera/plan/plan.hpp>

namespace tessera {

/// Returns the plan as text: the mesh as a grid of ranks; global shape, PartitionSpec and local
/// shapes of every tensor; memory per rank; traffic; the schedule of a step; FLOPs. If `topology`
/// tells the nodes, the text marks the axes and calls that cross nodes.
std::string to_text(const Plan& plan, const Topology& topology = 0);

/// Returns the plan as JSON. Ranks with equal values share one entry: {"ranks": "0-2", ...}.
nlohmann::json to_json(const Plan& plan, const Topology& topology = 0);

}  // namespace tessera
