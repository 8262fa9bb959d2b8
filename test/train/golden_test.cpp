// SPDX-License-Identifier: Apache-2.0
// The tutorial's published numbers on every number of ranks.
#include <array>
#include <utility>

#include <gtest/gtest.h>

#include "engine/training_support.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::trainer_of;
using train_test::tutorial;

constexpr std::array<double, 20> golden_losses{
    20.304867, 18.196810, 16.266327, 14.503105, 12.904068, 11.463385, 10.173880,
    9.027621,  8.016229,  7.131884,  6.366156,  5.710284,  5.154799,  4.689025,
    4.302612,  3.984879,  3.724764,  3.513017,  3.340585,  3.199372};

void expect_golden(const Experiment& setup) {
  Trainer<float> trainer = trainer_of<float>(setup);
  const TrainingMetrics metrics = trainer.fit(setup.data);
  ASSERT_EQ(metrics.epoch_losses.size(), golden_losses.size());
  for (std::size_t e = 0; e < golden_losses.size(); ++e)
    EXPECT_NEAR(metrics.epoch_losses[e], golden_losses[e], 1e-5) << "epoch " << e + 1;
  EXPECT_EQ(metrics.steps, 160);
  EXPECT_EQ(metrics.samples, 20 * 256);
  train_test::expect_same_on_all_ranks(trainer.mesh().world(), metrics.epoch_losses, "losses");
}

TEST(Golden, EveryEpochInStrictFloat32) { expect_golden(tutorial()); }

TEST(Golden, EveryEpochWithMicrobatchesBucketsAndOverlap) {
  Experiment setup = tutorial();
  setup.training.microbatches = 3;
  setup.training.distributed.bucket_bytes = 300;
  setup.training.distributed.overlap = true;
  expect_golden(setup);
}

TEST(Golden, Float64) {
  Trainer<double> trainer = trainer_of<double>(tutorial());
  const TrainingMetrics metrics = trainer.fit(tutorial().data);
  EXPECT_NEAR(metrics.initial_loss(), 20.304859, 2e-6);
  EXPECT_NEAR(metrics.final_loss(), 3.199354, 2e-6);
}

// The digits are published for one rank. On more ranks, only the order of sums differs. cuBLAS
// promises neither that it rounds to TF32 nor how.
TEST(Golden, Tf32) {
  Experiment setup = tutorial();
  setup.model.matmul_precision = MatmulPrecision::tf32;
  Trainer<float> trainer = trainer_of<float>(setup);
  const TrainingMetrics metrics = trainer.fit(setup.data);
  const double order = trainer.mesh().world().size() == 1 ? 2e-6 : 1e-5;
  for (const auto& [loss, expected] :
       {std::pair{metrics.initial_loss(), 20.304531}, std::pair{metrics.final_loss(), 3.199348}})
    EXPECT_NEAR(loss, expected, has_native_tf32() ? 0x1p-8 * expected : order);
  EXPECT_EQ(plan_violation(metrics), "");
}

// A bias that is added, or a loss that is counted, once per microbatch or rank would show here.
TEST(Golden, FirstBatch) {
  for (Size microbatches : {1, 3, 5, 32}) {
    Experiment setup = tutorial();
    setup.data.samples = 32;
    setup.training.num_epochs = 1;
    setup.training.microbatches = microbatches;
    Trainer<float> trainer = trainer_of<float>(setup);
    EXPECT_NEAR(trainer.fit(setup.data).initial_loss(), 17.144169, 1e-5);
    const std::vector<double> gradients = train_test::to_host(trainer.gather(TensorRole::gradient));
    double squares = 0;
    for (double g : gradients) squares += g * g;
    EXPECT_NEAR(std::sqrt(squares), 27.296532, 2e-5) << microbatches << " microbatches";
    EXPECT_NEAR(gradients.back(), -6.473012, 5e-6) << microbatches << " microbatches";
  }
}

}  // namespace
}  // namespace tessera
