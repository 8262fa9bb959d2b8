// SPDX-License-Identifier: Apache-2.0
// Training in mixed precision, on a mesh and on one rank.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>

#include "engine/training_support.hpp"

namespace tessera::train_test {

template <class T>
Experiment in_precision(Experiment setup) {
  setup.training.distributed.mixed_precision = std::is_same_v<T, BFloat16>  ? MixedPrecision::bf16
                                               : std::is_same_v<T, Float16> ? MixedPrecision::fp16
                                                                            : MixedPrecision::no;
  return setup;
}

struct ShortTraining {
  std::vector<double> losses, parameters;
  Size skipped_steps = 0;
  std::vector<double> gradients{};
};

/// Trains and checks traffic and memory. Collective.
template <class T>
ShortTraining train_short(const Experiment& setup, const CommOptions& comm = {}) {
  Trainer<T> trainer(setup.model, setup.training, comm);
  const TrainingMetrics metrics = trainer.fit(setup.data);
  EXPECT_EQ(plan_violation(metrics), "");
  ShortTraining result{metrics.epoch_losses, to_host(trainer.gather()), metrics.skipped_steps,
                       to_host(trainer.gather(TensorRole::gradient))};
  std::vector<double> numbers = result.parameters;
  numbers.insert(numbers.end(), result.losses.begin(), result.losses.end());
  expect_same_on_all_ranks(trainer.mesh().world(), numbers, "parameters or losses");
  return result;
}

/// Trains on this rank alone, with one microbatch.
template <class T>
ShortTraining train_alone(const Experiment& setup) {
  Experiment alone = setup;
  alone.training.microbatches = 1;
  DistributedConfig& distributed = alone.training.distributed = {};
  distributed.mesh_shape = {1};
  distributed.mesh_axis_names = {"data"};
  distributed.gradient_reduce_type = setup.training.distributed.gradient_reduce_type;
  alone = in_precision<T>(alone);
  const Config config{alone.model, alone.data, alone.training, {}};
  const Mesh mesh(Communicator::world().alone("reference"), resolve_mesh(config, 1));
  TrainingSession<T> session(
      config.training, make_plan(plan_input(config, mesh.shape())), mesh,
      [&](const Plan& plan) { return make_data<StateOf<T>>(plan, 0, config.data); });
  ShortTraining result;
  for (Size epoch = 0; epoch < config.training.num_epochs; ++epoch) {
    double sum = 0;
    const std::vector<double> losses = session.run_epoch();
    for (const double loss : losses) sum += loss;
    result.losses.push_back(sum / static_cast<double>(losses.size()));
  }
  const auto whole = [&](TensorRole role) {
    return to_host(whole_tensors(session.plan(), mesh, session.engine(), role));
  };
  result.parameters = whole(TensorRole::parameter);
  result.gradients = whole(TensorRole::gradient);
  result.skipped_steps = session.engine().loss_scale().skipped_steps();
  return result;
}

template <class T>
constexpr double roundoff = std::is_same_v<T, BFloat16> ? 0x1p-8 : 0x1p-11;  // unit roundoff of T

/// Expects equality up to the unit roundoff: sums in float in another order may round a value in
/// the other direction.
template <class T>
void expect_like_alone(const ShortTraining& result, const ShortTraining& alone) {
  EXPECT_EQ(result.skipped_steps, alone.skipped_steps);
  EXPECT_LE(relative_difference(result.losses, alone.losses), roundoff<T>);
  EXPECT_LE(relative_difference(result.parameters, alone.parameters), roundoff<T>);
}

}  // namespace tessera::train_test
