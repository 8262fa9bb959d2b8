// SPDX-License-Identifier: Apache-2.0
// The arithmetic and the scratch memory of attention.
#pragma once

#include <tessera/nn/layers/layer_kind.hpp>

namespace tessera::detail {

/// Returns the products over the blocks of queries and keys, of all heads.
LayerProducts attention_products(const LayerSpec& layer, Size samples);

/// Returns one exponential function for each score, and the sums over rows of scores.
LayerFunctions attention_functions(const LayerSpec& layer);

/// Returns the elements of the squares and of the sums of some heads (Attention::squares,
/// Attention::key_sums, Attention::query_sums), with the open nodes of the tree over blocks.
Size attention_scratch(const LayerSpec& layer, Size samples);

}  // namespace tessera::detail
