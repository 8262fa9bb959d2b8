// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/app/run_report.hpp>
#include <tessera/base/allocation_tracker.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/random/fill.hpp>
#include <tessera/random/threefry.hpp>
#include <tessera/train/trainer.hpp>

#include "engine/reference.hpp"

namespace tessera::train_test {

/// A model, its training and its data.
struct Experiment {
  ModelConfig model{};
  TrainingConfig training{};
  DataConfig data{};
};

/// Returns the tutorial, for any number of ranks.
inline Experiment tutorial() {
  Experiment setup;
  setup.model.mlp.widths = {4, 64, 1};
  return setup;
}

/// Returns five layers of prime widths, trained for two epochs of two batches and a smaller one.
inline Experiment primes(Size batch = 13) {
  Experiment setup;
  setup.model.mlp.widths = {3, 11, 13, 7, 5, 2};
  setup.model.mlp.activation = Activation::tanh;
  setup.training.batch_size = batch;
  setup.training.num_epochs = 2;
  setup.training.learning_rate = 0.01;
  setup.data.kind = DataKind::random;
  setup.data.samples = 2 * batch + (batch + 1) / 2;
  return setup;
}

template <class T>
std::vector<double> to_host(const Vector<T>& view) {
  const auto mirror = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  return {mirror.data(), mirror.data() + mirror.extent(0)};
}

/// The whole data set on the device.
template <class T>
struct Samples {
  Matrix<T> x, y;
};

template <class T>
Table to_table(const Matrix<T>& m) {
  const Size rows = static_cast<Size>(m.extent(0)), cols = static_cast<Size>(m.extent(1));
  return {rows, cols, to_host(Vector<T>(m.data(), m.extent(0) * m.extent(1)))};
}

template <class T>
Samples<T> samples_of(const Experiment& setup) {
  const std::size_t rows = setup.data.samples;
  const ModelSpec model = make_model(setup.model);
  Samples<T> all{Matrix<T>("x", rows * model.input_positions, model.input_width),
                 Matrix<T>("y", rows * model.output_positions(), model.target_width())};
  if (setup.data.kind != DataKind::sum_of_squares) {
    row_of(setup.data.kind)
        .fill.run(setup.data, model, DataBlock<T>{{0, setup.data.samples}, all.x, all.y});
    return all;
  }
  fill_normal<T>(all.x, key(setup.data.seed));
  const auto x = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), all.x);
  const auto y = Kokkos::create_mirror_view(all.y);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < x.extent(1); ++j) y(i, 0) += x(i, j) * x(i, j);
  Kokkos::deep_copy(all.y, y);
  return all;
}

inline std::vector<double> initial_parameters(const MlpConfig& config) {
  std::vector<double> all;
  for (std::size_t l = 0; l + 1 < config.widths.size(); ++l) {
    const Matrix<double> kernel("kernel", config.widths[l], config.widths[l + 1]);
    initialize(Vector<double>(kernel.data(), kernel.span()), config.initializer,
               fold_in(key(config.seed), static_cast<std::uint32_t>(2 * l)), {}, config.widths[l],
               config.widths[l + 1]);
    for (double value : to_table(kernel).values) all.push_back(value);
    if (config.bias) all.resize(all.size() + static_cast<std::size_t>(config.widths[l + 1]));
  }
  return all;
}

inline Reference reference_of(const Experiment& setup) {
  return {setup.model, setup.training, initial_parameters(setup.model.mlp)};
}

/// Returns the trainer of a setup in type T; for a half type the setup is in mixed precision.
template <class T>
Trainer<T> trainer_of(Experiment setup) {
  setup.model.dtype = dtype_of<StateOf<T>>();
  return Trainer<T>(setup.model, setup.training);
}

/// Expects no allocation from the end of the first epoch to the end of the last.
template <class T>
void expect_no_allocation_when_warm(Experiment setup) {
  setup.training.num_epochs = 4;
  std::optional<AllocationScope> scope;
  Trainer<T> trainer = trainer_of<T>(setup);
  Size last = -1;
  trainer.fit(setup.data, [&](Size epoch, double) {
    if (epoch == 1) scope.emplace();
    if (epoch == 4) last = scope->allocations();
  });
  EXPECT_EQ(last, 0);
}

/// Returns the largest difference over the largest magnitude; infinity if any number is not finite.
inline double relative_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i]))
      return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::abs(a[i] - b[i]));
    size = std::max(size, std::abs(b[i]));
  }
  return size == 0 ? difference : difference / size;
}

/// Expects bitwise equal numbers on every rank. Collective.
inline void expect_same_on_all_ranks(const Communicator& world, const std::vector<double>& values,
                                     const char* what) {
  const Kokkos::View<double*, Kokkos::HostSpace> low("low", values.size()),
      high("high", values.size());
  for (std::size_t i = 0; i < values.size(); ++i) low(i) = high(i) = values[i];
  world.all_reduce(low, ReduceOp::min);
  world.all_reduce(high, ReduceOp::max);
  Size different = 0;
  for (std::size_t i = 0; i < values.size(); ++i) different += low(i) != high(i);
  EXPECT_EQ(different, 0) << what << " differ between ranks";
}

}  // namespace tessera::train_test
