// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/nn/mlp.hpp>

namespace tessera {

struct ResidualMlpConfig {
  Size input_width = 4;
  Size width = 64;         ///< of the residual stream
  Size inner_width = 256;  ///< between fc1 and fc2
  Size blocks = 2;
  Size output_width = 1;
  friend bool operator==(const ResidualMlpConfig&, const ResidualMlpConfig&) = default;
};

/// x = input kernel + bias; blocks x + fc2(activation(fc1(ln(x)))); output kernel + bias. Units
/// "input", "block1/ln", "block1/fc1", "block1/fc2", ..., "output". fc1 is (embed, mlp) and fc2
/// (mlp, embed). `layers`: activations, bias, initializer and seed. Throws ConfigError for a size
/// that is not positive.
ModelSpec residual_mlp(const ResidualMlpConfig& config, const MlpConfig& layers = {});

}  // namespace tessera
