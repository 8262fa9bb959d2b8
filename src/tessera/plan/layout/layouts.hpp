// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/mesh/transition.hpp>
#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// Returns the placements of each layer along the axis `model`. The rules, or the specs of single
/// parameters, choose the layouts of linear layers. Every other layer takes the layout that needs
/// least traffic to redistribute its inputs. With sequence_parallel, layers after a sum over
/// `model` split rows if they can. Throws ConfigError if no layout fits a spec or a spec names
/// another axis.
std::vector<Layout> choose_layouts(const PlanInput& input);

/// Returns the placement of a layer's output. Input data is replicated along `model`.
Placement output_placement(const std::vector<Layout>& layouts, Size layer);

/// Returns the placement in which the loss reads the prediction: replicated, or split by columns if
/// the loss supports that.
Placement loss_placement(const PlanInput& input, const std::vector<Layout>& layouts);

/// Returns the layers with the extents of the ranks with this coordinate along `model`.
std::vector<LayerSpec> local_layers(const PlanInput& input, const std::vector<Layout>& layouts,
                                    Size coordinate);

/// Returns the block of a parameter on those ranks. `along_model` is the parameter's placement.
Block parameter_block(const Shape& shape, Placement along_model, Size model_ranks, Size coordinate);

}  // namespace tessera
