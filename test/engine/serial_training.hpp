// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <tessera/base/alias.hpp>

#include "engine/strategy_support.hpp"
#include "nn/serial_model.hpp"

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

struct TrainedAlone {
  std::vector<double> losses, gradients, parameters;
};

/// Trains whole batches on this rank alone with SerialModel and the library's optimizer.
inline TrainedAlone train_alone(const ModelSpec& model, const Experiment& setup) {
  const Samples<double> all = samples_of<double>(setup);
  const TrainingConfig& training = setup.training;
  Optimizer<double> optimizer(training.optimizer, model.num_parameters());
  test::SerialModel<double> first(model, 0);
  const Vector<double> parameters = first.parameters();
  TrainedAlone trained;
  Size step = 0;
  for (Size epoch = 0; epoch < training.num_epochs; ++epoch) {
    double sum = 0, batches = 0;
    for (Size begin = 0; begin < setup.data.samples; begin += training.batch_size, ++batches) {
      const Size rows = std::min(training.batch_size, setup.data.samples - begin);
      test::SerialModel<double> net(model, rows, training.loss);
      Kokkos::deep_copy(net.parameters(), parameters);
      const auto part = [&](const Matrix<double>& of, Size positions) {
        return rows_of(of, {begin * positions, rows * positions});
      };
      const Matrix<double> x = part(all.x, model.input_positions),
                           y = part(all.y, model.output_positions());
      net.set_step(++step);
      sum += net.loss(x, y);
      net.compute_gradients(x, y);
      trained.gradients = to_host(net.gradients());
      optimizer.step(parameters, Vector<const double>(net.gradients()), training.learning_rate);
    }
    trained.losses.push_back(sum / batches);
  }
  trained.parameters = to_host(parameters);
  return trained;
}

/// Expects that losses, the last gradient and parameters equal those of train_alone(), and that
/// traffic and memory are as planned. Collective.
inline void expect_trains_like_its_layers(const Experiment& setup) {
  ModelSpec model = make_model(setup.model);
  model.ignore_index = setup.training.ignore_index;
  const TrainedAlone alone = train_alone(model, setup);
  Trainer<double> trainer = trainer_of<double>(setup);
  const TrainingMetrics metrics = trainer.fit(setup.data);
  const bool sgd = setup.training.optimizer.kind == OptimizerKind::sgd;
  const double tolerance = sgd ? 1e-11 : 1e-7;
  EXPECT_LE(relative_difference(metrics.epoch_losses, alone.losses), tolerance);
  EXPECT_LE(relative_difference(to_host(trainer.gather(TensorRole::gradient)), alone.gradients),
            tolerance);
  const std::vector<double> parameters = to_host(trainer.gather());
  EXPECT_LE(relative_difference(parameters, alone.parameters), tolerance);
  EXPECT_EQ(plan_violation(metrics), "");
  expect_same_on_all_ranks(trainer.mesh().world(), parameters, "parameters");
}

}  // namespace tessera::train_test
