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
#include <tessera/train/trainer.hpp>

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
std::vector<double> to_host(const Matrix<T>& m) {
  return to_host(Vector<T>(m.data(), m.span()));
}

template <class T>
Samples<T> samples_of(const Experiment& setup) {
  const Size samples = setup.data.samples;
  const ModelSpec model = make_model(setup.model);
  const auto rows = [&](Size positions) { return static_cast<std::size_t>(samples * positions); };
  const Samples<T> all{Matrix<T>("x", rows(model.input_positions), model.input_width),
                       Matrix<T>("y", rows(model.output_positions()), model.target_width())};
  row_of(setup.data.kind).fill.run(setup.data, model, DataBlock<T>{{0, samples}, all.x, all.y});
  return all;
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

/// Returns how many numbers differ. Two that are not finite count as equal: a step that overflows
/// leaves them, and is skipped.
inline Size count_different(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  Size different = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    different += a[i] != b[i] && (std::isfinite(a[i]) || std::isfinite(b[i]));
  return different;
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
