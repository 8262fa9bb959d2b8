// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// Returns the runs of layers that stages do not cut: the layers of a unit with parameters, and the
/// layers without parameters that follow.
std::vector<Range> units_of(const std::vector<LayerSpec>& layers);

/// Returns the blocks of a model: the runs of layers of one block_of() whose name ends with a
/// number, as "block1" of a transformer and "layer1" of an MLP. An embedding comes before them, a
/// last norm and logits behind them.
std::vector<Range> blocks_of(const std::vector<LayerSpec>& layers);

/// Returns the runs of layers of each stage, one per chunk, in the order of layers. No unit is cut.
/// Throws ConfigError if a chunk would have no unit with parameters, if StageBalance::blocks or
/// stage_layout does not fit the model, or if the shape of the pipeline is invalid (check_shape()).
std::vector<std::vector<Range>> split_into_stages(const PlanInput& input);

}  // namespace tessera
