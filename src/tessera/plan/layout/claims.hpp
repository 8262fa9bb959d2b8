// SPDX-License-Identifier: Apache-2.0
// Which index of a layer each axis of the mesh splits. The placements of the layer's tensors follow
// from its expression.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tessera/nn/layers/layer_row.hpp>

namespace tessera {

/// Returns the layout of a layer along a mesh axis that splits `split`: an index, two (see
/// derive()), or none.
Layout layout_of(const LayerSpec& layer, std::string_view split);

/// Returns the layouts that a layer can have along `model`: whole tensors, then one for each index
/// with a dimension that the axis claims. The last one may split the rows, sample and position as
/// one, which only sequence parallelism does.
std::vector<Layout> model_layouts(const LayerSpec& layer);

/// Returns true if the layout splits the rows of the output.
bool splits_rows(const Layout& layout);

/// Returns the indices that `context` splits: the first one with a dimension that the axis claims,
/// and the index that a ring streams. Empty if the layer takes whole samples.
std::string context_split(const Expression& expression, ContextAttention attention);

/// Returns true if a tensor has a dimension that `context` claims, split or not.
bool has_context(const Expression& expression);

}  // namespace tessera
