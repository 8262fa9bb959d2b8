// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/nn/mlp.hpp>

namespace tessera {

struct FnoConfig {
  Size grid = 32;   ///< points along each dimension
  Size modes = 12;  ///< kept along the second dimension; twice as many along the first
  Size width = 32;  ///< channels of the field
  Size layers = 4;
  Size projection = 128;  ///< width between the two layers of the projection
  friend bool operator==(const FnoConfig&, const FnoConfig&) = default;
};

/// A Fourier neural operator in two dimensions (Li et al. 2021). x (grid grid, 3): a function at
/// the points of a grid, and their coordinates; y (grid grid, 1). Unit "lift" takes the columns to
/// `width` channels; "layer1", "layer2", ...: v = activation(K v + v kernel + bias), K v being
/// inverse_fourier(mode_product(fourier(v))), without an activation in the last one; "projection"
/// and "output" take the channels to `projection` columns and to one. Along `model` the modes are
/// split, and `projection`. `layers`: activation, initializer, seed, and whether dense layers have
/// a bias. Throws ConfigError for a size that is not positive, and for a grid of fewer points than
/// two times the modes.
ModelSpec fno(const FnoConfig& config, const MlpConfig& layers = {});

}  // namespace tessera
