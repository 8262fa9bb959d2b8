// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/strategy_support.hpp"

namespace tessera::train_test {

/// Returns a training of two epochs, each of two batches and a smaller one. Sizes are such that 2,
/// 3, 4, 6 and 8 ranks divide some evenly and some not.
inline Experiment of_kind(ModelKind kind, DataKind data, LossKind loss) {
  Experiment setup = primes(7);
  setup.model.kind = kind;
  setup.model.mlp.widths.clear();
  setup.model.dtype = DType::float64;
  setup.training.optimizer.kind = OptimizerKind::sgd;
  setup.training.loss = loss;
  setup.training.learning_rate = 0.1;
  setup.data.kind = data;
  return setup;
}

/// Returns such a training of a small variational autoencoder.
inline Experiment small_vae() {
  Experiment setup = of_kind(ModelKind::vae, DataKind::blobs, LossKind::bce);
  setup.model.vae = {.input_width = 9, .hidden = {7, 5}, .latent = 3, .beta = 2};
  return setup;
}

/// The end of a training.
struct Trained {
  std::vector<double> losses, gradients, parameters;  ///< of epochs, of the last step, at the end
  Size skipped_steps = 0;
};

/// Trains whole batches on this rank alone, in double, with the model's layers and the library's
/// optimizer: without plan, engine and communicator. A batch without a target that counts gives
/// NaN, and ignored targets count in sums of gradients.
Trained train_layers(const ModelSpec& model, const Experiment& setup);
inline Trained train_layers(const Experiment& setup) {
  ModelSpec model = make_model(setup.model);
  model.ignore_index = setup.training.ignore_index;
  return train_layers(model, setup);
}

}  // namespace tessera::train_test
