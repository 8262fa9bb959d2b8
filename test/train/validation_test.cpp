// SPDX-License-Identifier: Apache-2.0
// Unseen samples between epochs, and epochs in another order.
#include <string>

#include <gtest/gtest.h>

#include <tessera/base/alias.hpp>
#include <tessera/random/permutation.hpp>

#include "engine/error_everywhere.hpp"
#include "engine/strategy_support.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::for_strategies;
using train_test::primes;
using train_test::relative_difference;
using train_test::Samples;
using train_test::samples_of;
using train_test::trainer_of;

/// Two full batches and a smaller one of unseen samples.
Experiment validated() {
  Experiment setup = primes();
  setup.data.validation_samples = 2 * setup.training.batch_size + 3;
  setup.training.num_epochs = 5;
  setup.training.validate_every = 2;
  return setup;
}

/// Returns the data set followed by the validation samples.
template <class T>
Samples<T> all_samples(Experiment setup) {
  setup.data.samples += setup.data.validation_samples;
  return samples_of<T>(setup);
}

/// Evaluates the validation samples as arrays.
double loss_of_unseen(Trainer<double>& trainer, const Experiment& setup) {
  const Samples<double> all = all_samples<double>(setup);
  const Range unseen{setup.data.samples, setup.data.validation_samples};
  return trainer.evaluate(rows_of(all.x, unseen), rows_of(all.y, unseen));
}

TEST(Validation, IsTheLossOfUnseenSamplesOnEveryMesh) {
  Experiment base = validated();
  base.training.microbatches = 3;
  for_strategies(base, [](const Experiment& setup, const std::string& what) {
    SCOPED_TRACE(what);
    Trainer<double> trainer = trainer_of<double>(setup);
    const TrainingMetrics metrics = trainer.fit(setup.data);
    EXPECT_EQ(plan_violation(metrics), "");
    std::vector<Size> epochs;
    for (const EpochValidation& validation : metrics.validations)
      epochs.push_back(validation.epoch);
    EXPECT_EQ(epochs, (std::vector<Size>{2, 4, 5}));
    EXPECT_NEAR(metrics.validations.back().result.loss, loss_of_unseen(trainer, setup), 1e-13);
    EXPECT_NE(metrics.validations[0].result.loss, metrics.validations[1].result.loss);
  });
}

TEST(Validation, LeavesTheTrainingAsItIs) {
  const Experiment setup = validated();
  Experiment without = setup;
  without.data.validation_samples = 0;
  without.training.validate_every = 1;
  EXPECT_EQ(trainer_of<double>(setup).fit(setup.data).epoch_losses,
            trainer_of<double>(without).fit(without.data).epoch_losses);
}

TEST(Validation, AnotherFitHasOtherSamples) {
  const Experiment setup = validated();
  Trainer<double> trainer = trainer_of<double>(setup);
  trainer.fit(setup.data);
  DataConfig more = setup.data;
  more.samples += 5;
  more.validation_samples = 2;
  const TrainingMetrics metrics = trainer.fit(more);
  EXPECT_EQ(plan_violation(metrics), "");
  Experiment then = setup;
  then.data = more;
  EXPECT_NEAR(metrics.validations.back().result.loss, loss_of_unseen(trainer, then), 1e-13);
}

Experiment shuffled() {
  Experiment setup = primes();
  setup.data.shuffle = true;
  setup.training.num_epochs = 3;
  setup.model.dtype = DType::float64;
  setup.training.optimizer.kind = OptimizerKind::sgd;
  return setup;
}

TEST(Shuffle, IsTheSameOnEveryMesh) {
  Experiment alone = shuffled();
  const Samples<double> all = samples_of<double>(alone);
  // Applies the order to whole arrays and fits one epoch at a time.
  Trainer<double> trainer = trainer_of<double>(alone);
  std::vector<double> expected;
  {
    Experiment one = alone;
    one.training.num_epochs = 1;
    Trainer<double> by_hand = trainer_of<double>(one);
    const Size n = alone.data.samples;
    const auto x = train_test::to_host(Vector<double>(all.x.data(), all.x.span()));
    const auto y = train_test::to_host(Vector<double>(all.y.data(), all.y.span()));
    for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
      const Key order = fold_in(fold_in(key(alone.data.seed), 0x73687566), epoch);
      const Samples<double> in_order{Matrix<double>("x", n, 3), Matrix<double>("y", n, 2)};
      const auto hx = Kokkos::create_mirror_view(in_order.x);
      const auto hy = Kokkos::create_mirror_view(in_order.y);
      for (Size i = 0; i < n; ++i) {
        const Size sample = permuted(order, n, i);
        for (Size j = 0; j < 3; ++j) hx(i, j) = x[sample * 3 + j];
        for (Size j = 0; j < 2; ++j) hy(i, j) = y[sample * 2 + j];
      }
      Kokkos::deep_copy(in_order.x, hx);
      Kokkos::deep_copy(in_order.y, hy);
      expected.push_back(by_hand.fit(in_order.x, in_order.y).final_loss());
    }
  }
  EXPECT_LE(relative_difference(trainer.fit(alone.data).epoch_losses, expected), 1e-13);
  for_strategies(shuffled(), [&](const Experiment& setup, const std::string& what) {
    SCOPED_TRACE(what);
    const TrainingMetrics metrics = trainer_of<double>(setup).fit(setup.data);
    EXPECT_LE(relative_difference(metrics.epoch_losses, expected), 1e-11);
    EXPECT_EQ(plan_violation(metrics), "");
  });
}

TEST(Shuffle, WarmStepsAllocateNothing) {
  train_test::expect_no_allocation_when_warm<double>(
      train_test::on_mesh(shuffled(), {{"data", Communicator::world().size()}}, "data"));
}

}  // namespace
}  // namespace tessera
