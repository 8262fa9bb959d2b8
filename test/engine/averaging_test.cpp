// SPDX-License-Identifier: Apache-2.0
// One averaging rule: the sum of local sums over the global count. Each test shows that the mistake
// it is named after would be seen in the numbers it compares.
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

/// One step of SGD on one batch of 13 rows, which divide nothing.
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

/// Mean over `parts` balanced parts of the batch of each part's mean gradient.
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

TEST(Averaging, MeanOfMeansOfRanksIsNotWhatIsTrained) {
  const Experiment setup = one_step();
  const Size ranks = Communicator::world().size();
  const std::vector<double> gradients = train(setup).gradients;
  EXPECT_LE(relative_difference(gradients, mean_of_means(setup, 1)), 1e-5);
  if (ranks > 1) {
    EXPECT_GT(relative_difference(gradients, mean_of_means(setup, ranks)), 1e-3);
  }
}

TEST(Averaging, MeanOfMeansOfMicrobatchesIsNotWhatIsTrained) {
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

// Adam normalises: taking the sum for the mean moves SGD by 26 times as much and Adam not at all.
TEST(Averaging, SgdSeesSumForMeanAndAdamDoesNot) {
  for (OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam}) {
    Experiment mean = one_step(GradientReduceType::mean), sum = one_step(GradientReduceType::sum);
    mean.training.optimizer.kind = sum.training.optimizer.kind = kind;
    const double difference = relative_difference(train(sum).parameters, train(mean).parameters);
    if (kind == OptimizerKind::sgd) {
      EXPECT_GT(difference, 1e-2);
    } else {
      EXPECT_LT(difference, 1e-4);
    }
  }
}

TEST(Averaging, BiasCountsOncePerSampleForAnyMicrobatches) {
  const Trained whole = train(one_step());
  for (Size microbatches : {2, 5, 13}) {
    Experiment setup = one_step();
    setup.training.microbatches = microbatches;
    const Trained parts = train(setup);
    // The last two elements are the output layer's bias.
    for (std::size_t i = whole.gradients.size() - 2; i < whole.gradients.size(); ++i)
      EXPECT_NEAR(parts.gradients[i], whole.gradients[i], 1e-6) << microbatches;
  }
}

TEST(Averaging, LastBatchIsTrainedOnEvenIfSmaller) {
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
  // Dropping the 7 rows beyond the second batch would be seen.
  Table shorter_x = x, shorter_y = y;
  shorter_x.rows = shorter_y.rows = 26;
  EXPECT_GT(relative_difference(metrics.epoch_losses,
                                train_test::reference_of(setup).fit(shorter_x, shorter_y)),
            1e-3);
}

// 2 rows left for 8 ranks and 3 microbatches: most have nothing to do, and all take part.
TEST(Averaging, LastBatchSmallerThanRanksAndMicrobatches) {
  Experiment setup = primes(16);
  setup.data.samples = 16 + 2;
  setup.training.microbatches = 3;
  setup.training.distributed.overlap = true;
  Trainer<float> trainer = trainer_of<float>(setup);
  const TrainingMetrics metrics = trainer.fit(setup.data);
  const Samples<double> all = train_test::samples_of<double>(setup);
  EXPECT_LE(relative_difference(metrics.epoch_losses, train_test::reference_of(setup).fit(
                                                          to_table(all.x), to_table(all.y))),
            1e-5);
  EXPECT_EQ(plan_violation(metrics), "");
}

}  // namespace
}  // namespace tessera
