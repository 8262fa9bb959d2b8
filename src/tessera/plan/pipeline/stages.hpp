// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// Runs of layers that stay together: those of a unit with parameters, and what follows without.
std::vector<Range> units_of(const std::vector<LayerSpec>& layers);

/// The model's layers by stage, and on each stage by chunk: runs of units, so that no unit is cut.
/// Throws ConfigError if there are fewer units with parameters than chunks, if the shape of the
/// pipeline is wrong, or if its schedule would be too long.
std::vector<std::vector<Range>> split_into_stages(const PlanInput& input);

}  // namespace tessera
