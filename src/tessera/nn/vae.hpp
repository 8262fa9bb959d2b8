// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/nn/mlp.hpp>

namespace tessera {

struct VaeConfig {
  Size input_width = 784;
  std::vector<Size> hidden{512, 512};  ///< of the encoder; the decoder has them in reverse
  Size latent = 20;                    ///< columns of z
  double beta = 1;                     ///< weight of the KL divergence (Higgins et al. 2017)
  friend bool operator==(const VaeConfig&, const VaeConfig&) = default;
};

/// A variational autoencoder (Kingma and Welling 2014): hidden layers, two heads on the last of
/// them, mean and logvar of a normal distribution, a draw z from it, and hidden layers back to the
/// logits of the input. With the loss bce the mean over samples is -ELBO, if beta is 1. Units
/// "encoder1", ..., "mean", "logvar", "decoder1", ... Kernels of encoder and decoder are (embed,
/// mlp) and (mlp, embed) in turn, each from the first one on; those of the heads, which are small,
/// are row-parallel, or whole. `layers`: activation between layers, bias, initializer and seed, of
/// the noise as well. Throws ConfigError for a size that is not positive, and for an activation of
/// the output.
ModelSpec vae(const VaeConfig& config, const MlpConfig& layers = {});

}  // namespace tessera
