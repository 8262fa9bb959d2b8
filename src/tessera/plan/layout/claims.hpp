// SPDX-License-Identifier: Apache-2.0
// Which index of a layer each axis of the mesh splits. The placements of the layer's tensors follow
// from its expression.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// Returns the placements of a layer along a mesh axis that splits `split`: an index, two (see
/// derive()), or none.
Layout placements_of(const LayerSpec& layer, std::string_view split);

/// Returns the placements that a layer can have along `model`: whole tensors, then those for each
/// index with a dimension that the axis claims. The last ones may split the rows, sample and
/// position as one, which only sequence parallelism does.
std::vector<Layout> model_choices(const LayerSpec& layer);

/// Returns the placements of each layer along the axis `model`. For kinds of layers with
/// LayerKind::rules_choose, the rules or the specs of single parameters choose them. Every other
/// layer keeps the split of its inputs. With sequence_parallel, layers after a sum over `model`
/// split rows if they can. Throws ConfigError if that is not possible: a spec names no parameter of
/// the model or an axis other than `model`, a layer does not support the placements, heads, modes
/// or experts do not divide evenly, or sequence_parallel finds no rows to split.
std::vector<Layout> choose_along_model(const PlanInput& input);

/// Returns true if the axis splits the rows of the output.
bool splits_rows(const Layout& along);

/// Returns the indices that `context` splits: the first one with a dimension that the axis claims,
/// and the index that a ring streams; with all_to_all, the heads of attention. Empty if the layer
/// takes whole samples.
std::string context_split(const Expression& expression, ContextAttention attention);

/// Returns true if a tensor has a dimension that `context` claims, split or not.
bool has_context(const Expression& expression);

}  // namespace tessera
