// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/nn/mlp.hpp>

namespace tessera {

struct TransformerConfig {
  Size vocabulary = 64;
  Size context = 32;  ///< positions of a sequence
  Size width = 64;    ///< of the residual stream
  Size heads = 4;     ///< of an attention layer
  Size blocks = 2;
  Size inner_width = 256;  ///< between fc1 and fc2
  friend bool operator==(const TransformerConfig&, const TransformerConfig&) = default;
};

/// A decoder of GPT-2's shape (Radford et al. 2019): x = table[token] + position; blocks
/// x += proj(attention(qkv(ln1(x)))), x += fc2(activation(fc1(ln2(x)))); logits = ln(x) kernel.
/// Units "embedding", "block1/ln1", "block1/qkv", "block1/proj", "block1/ln2", "block1/fc1",
/// "block1/fc2", ..., "ln", "logits". qkv is (embed, heads) and proj (heads, embed), fc1 (embed,
/// mlp) and fc2 (mlp, embed), table (vocab, embed) and logits (embed, vocab). `layers`: activation,
/// bias, initializer and seed. Throws ConfigError for a size that is not positive, and for a width
/// that heads do not divide.
ModelSpec transformer(const TransformerConfig& config, const MlpConfig& layers = {});

}  // namespace tessera
