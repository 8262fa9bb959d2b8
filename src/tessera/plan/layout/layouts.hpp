// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/mesh/transition.hpp>
#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// How each layer of the model lies along the axis `model`. The rules, or the specs of single
/// parameters, choose the layouts of linear layers; every other layer takes the one into which its
/// inputs are brought with the least traffic. With sequence_parallel, layers that may split rows do
/// so behind a sum. Throws ConfigError for specs that no layout fits or that name another axis.
std::vector<Layout> choose_layouts(const PlanInput& input);

/// The placement of a layer's output, or of x, which every rank of `model` has whole.
Placement output_placement(const std::vector<Layout>& layouts, Size layer);

/// How the loss reads the prediction: whole, unless it can do with the columns that a rank has.
Placement loss_placement(const PlanInput& input, const std::vector<Layout>& layouts);

/// The layers with the extents of the ranks with this coordinate along `model`.
std::vector<LayerSpec> local_layers(const PlanInput& input, const std::vector<Layout>& layouts,
                                    Size coordinate);

/// The block of a parameter on those ranks. `along_model`: the parameter's placement.
Block parameter_block(const Shape& shape, Placement along_model, Size model_ranks, Size coordinate);

}  // namespace tessera
