// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/nn/layer_spec.hpp>

namespace tessera {

/// Causal self-attention of `heads` heads (Vaswani et al. 2017): of each head the input has the
/// columns q, k and v, side by side, and the output softmax(q k^T / sqrt(columns)) v, where a
/// position sees itself and those before it. Input width: 3 * heads * head_width. Along `model` a
/// rank has some heads.
///
/// Nothing is kept: backward computes the probabilities again, a head at a time, so that memory
/// does not grow with the square of the positions of all samples (Dao et al. 2022).
LayerSpec causal_attention(std::string name, std::string unit, Size qkv, Size heads,
                           Size head_width);

}  // namespace tessera
