// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/nn/mlp.hpp>

namespace tessera {

struct PinnConfig {
  Size width = 64;  ///< of the hidden layers
  Size layers = 3;  ///< hidden ones
  friend bool operator==(const PinnConfig&, const PinnConfig&) = default;
};

/// A physics-informed network (Raissi, Perdikaris and Karniadakis 2019): an MLP u(x, y), held
/// against an equation of second order. A sample is a point inside the domain and one of its
/// border. Its rows are those of jet_activation(): x has what they are of the map (x, y) itself,
/// which is the point inside, the unit vectors, zeros and the border point; the prediction has them
/// of u. Units "layer1", "layer2", ... and their logical names are those of an mlp. `layers`:
/// activations, bias, initializer and seed. Throws ConfigError for a size that is not positive, and
/// for an activation whose derivatives jets do not have.
ModelSpec pinn(const PinnConfig& config, const MlpConfig& layers);

}  // namespace tessera
