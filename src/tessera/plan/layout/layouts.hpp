// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/plan/layout/slot.hpp>
#include <tessera/plan/plan_input.hpp>
#include <tessera/tensor/transition.hpp>

namespace tessera {

/// Returns the placements of each layer along the axis `model`. For kinds of layers with
/// LayerRow::rules_choose, the rules or the specs of single parameters choose the layout. Every
/// other layer keeps the split of its inputs. With sequence_parallel, layers after a sum over
/// `model` split rows if they can. Throws ConfigError if the model has no such layout: a spec names
/// no parameter of the model or an axis other than `model`, a layer does not support the
/// placements, heads, modes or experts do not divide evenly, or sequence_parallel finds no rows to
/// split.
std::vector<Layout> choose_layouts(const PlanInput& input);

/// Returns the placements of each layer along the axis `context`. It splits no parameters: each
/// rank reads its part of them. Throws ConfigError if a layer or the loss needs whole samples.
std::vector<Layout> context_layouts(const PlanInput& input);

/// Separates the two roles of tensors (separate_roles()) if `context` splits positions: ranks then
/// move keys and values, and no queries.
void add_shared_rows(PlanInput& input);

/// Returns the placement in which the loss reads the prediction: replicated, or split by columns if
/// the loss supports that.
Placement loss_placement(const PlanInput& input, const std::vector<Layout>& layouts);

/// Returns the model's layers with the extents that they have on a rank.
std::vector<LayerSpec> local_layers(const PlanInput& input, const std::vector<Layout>& layouts,
                                    Size rank);

}  // namespace tessera
