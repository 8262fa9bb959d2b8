// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <tessera/plan/plan.hpp>

namespace tessera {

/// The plan as a person reads it: mesh as a grid of ranks, every tensor's global shape,
/// PartitionSpec and local shapes, memory per rank, schedule and traffic of a step, FLOPs; and, if
/// the nodes are known, which axes and calls cross them.
std::string to_text(const Plan& plan, const Topology& topology = 0);

/// The same as data. Ranks that hold the same are listed together: {"ranks": "0-2", ...}.
nlohmann::json to_json(const Plan& plan, const Topology& topology = 0);

}  // namespace tessera
