// SPDX-License-Identifier: Apache-2.0
// There is one averaging rule: the sum of local sums divided by the global count. Each test also
// shows that the mistake in its name would change the compared numbers.
#include <vector>

#include <gtest/gtest.h>

#include "engine/training_support.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::primes;
using train_test::Reference;
using train_test::relative_difference;
using train_test::Samples;
using train_test::Table;
using train_test::to_host;
using train_test::to_table;
using train_test::trainer_of;

/// Returns one step of SGD on one batch of 13 rows, which 2 to 8 ranks do not divide evenly.
Experiment one_step(GradientReduceType type = GradientReduceType::mean) {
  Experiment setup = primes(13);
  setup.training.optimizer.kind = OptimizerKind::sgd;
  setup.training.distributed.gradient_reduce_type = type;
  setup.training.num_epochs = 1;
  setup.data.samples = 13;
  return setup;
}

struct Trained {
  std::vector<double> gradients, parameters, losses;
};

Trained train(const Experiment& setup) {
  Trainer<float> trainer = trainer_of<float>(setup);
  const TrainingMetrics metrics = trainer.fit(setup.data);
  return {to_host(trainer.gather(TensorRole::gradient)), to_host(trainer.gather()),
          metrics.epoch_losses};
}

/// Returns the mean over `parts` balanced parts of the batch of each part's mean gradient.
std::vector<double> mean_of_means(const Experiment& setup, Size parts) {
  const Samples<double> all = train_test::samples_of<double>(setup);
  const Table x = to_table(all.x), y = to_table(all.y);
  Reference reference = train_test::reference_of(setup);
  std::vector<double> mean(reference.parameters().size());
  for (Size part = 0; part < parts; ++part) {
    reference.compute_gradients(x, y, balanced_split(x.rows, parts, part));
    for (std::size_t i = 0; i < mean.size(); ++i)
      mean[i] += reference.gradients()[i] / static_cast<double>(parts);
  }
  return mean;
}

TEST(Averaging, GradientIsNotTheMeanOfTheMeansOfRanks) {
  const Experiment setup = one_step();
  const Size ranks = Communicator::world().size();
  const std::vector<double> gradients = train(setup).gradients;
  EXPECT_LE(relative_difference(gradients, mean_of_means(setup, 1)), 1e-5);
  if (ranks > 1) {
    EXPECT_GT(relative_difference(gradients, mean_of_means(setup, ranks)), 1e-3);
  }
}

TEST(Averaging, GradientIsNotTheMeanOfTheMeansOfMicrobatches) {
  Experiment setup = one_step();
  setup.training.microbatches = 5;
  const std::vector<double> gradients = train(setup).gradients;
  EXPECT_LE(relative_difference(gradients, mean_of_means(setup, 1)), 1e-5);
  EXPECT_GT(relative_difference(gradients, mean_of_means(setup, 5)), 1e-3);
}

TEST(Averaging, SumIsTheMeanTimesTheTermsOfTheGlobalBatch) {
  const Trained mean = train(one_step(GradientReduceType::mean)),
                sum = train(one_step(GradientReduceType::sum));
  std::vector<double> scaled = mean.gradients;
  for (double& g : scaled) g *= 13 * 2;  // two outputs
  EXPECT_LE(relative_difference(sum.gradients, scaled), 1e-5);
  EXPECT_LE(relative_difference(sum.losses, mean.losses), 1e-7);
}

TEST(Averaging, SmallerLastBatchIsTrained) {
  Experiment setup = primes(13);
  setup.training.optimizer.kind = OptimizerKind::sgd;
  ASSERT_EQ(setup.data.samples, 33);
  Trainer<float> trainer = trainer_of<float>(setup);
  const TrainingMetrics metrics = trainer.fit(setup.data);
  EXPECT_EQ(metrics.steps, 2 * 3);
  EXPECT_EQ(metrics.samples, 2 * 33);

  const Samples<double> all = train_test::samples_of<double>(setup);
  const Table x = to_table(all.x), y = to_table(all.y);
  EXPECT_LE(relative_difference(metrics.epoch_losses, train_test::reference_of(setup).fit(x, y)),
            1e-5);
  // Dropping the 7 rows after the second batch changes the losses.
  Table shorter_x = x, shorter_y = y;
  shorter_x.rows = shorter_y.rows = 26;
  EXPECT_GT(relative_difference(metrics.epoch_losses,
                                train_test::reference_of(setup).fit(shorter_x, shorter_y)),
            1e-3);
}

}  // namespace
}  // namespace tessera
