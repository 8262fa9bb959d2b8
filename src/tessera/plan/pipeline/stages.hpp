// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// Returns the runs of layers that stages do not cut: the layers of a unit with parameters, and the
/// layers without parameters that follow.
std::vector<Range> units_of(const std::vector<LayerSpec>& layers);

/// Returns the runs of layers of each stage, one per chunk, in the order of layers. No unit is cut.
/// Throws ConfigError if there are fewer units with parameters than chunks, if the shape of the
/// pipeline is invalid (check_shape()), or if its schedule would be too long.
std::vector<std::vector<Range>> split_into_stages(const PlanInput& input);

}  // namespace tessera
