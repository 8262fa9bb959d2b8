// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// Returns runs of layers that stay on one stage: a unit with parameters and the following layers
/// without.
std::vector<Range> units_of(const std::vector<LayerSpec>& layers);

/// Returns the model's layers by stage and, on each stage, by chunk. No unit is cut. Throws
/// ConfigError if there are fewer units with parameters than chunks, if the shape of the pipeline
/// is invalid, or if its schedule would be too long.
std::vector<std::vector<Range>> split_into_stages(const PlanInput& input);

}  // namespace tessera
