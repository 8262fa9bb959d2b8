// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/nn/layer_spec.hpp>

namespace tessera {

/// y = table[x] + position: x is one column of the batch, numbers of `vocabulary` classes, and each
/// of `context` positions of a sample has a vector of its own. Parameters "table" (vocabulary,
/// width), drawn from `stream`, and "position" (context, width), from the next one. A number that
/// is no class gives NaN. Along `model` a rank has some rows of the table: the output is a sum.
LayerSpec embedding(std::string name, std::string unit, Size vocabulary, Size context, Size width,
                    std::uint32_t stream);

}  // namespace tessera
