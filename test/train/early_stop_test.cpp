// SPDX-License-Identifier: Apache-2.0
// Training ends when validations stop getting better, and the best state is kept.
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "checkpoint/resume_support.hpp"

namespace tessera {
namespace {

using checkpoint_test::End;
using checkpoint_test::expect_same_end;
using checkpoint_test::file_of;
using checkpoint_test::run;
using checkpoint_test::SharedDirectory;
using checkpoint_test::some_strategies;
using train_test::error_everywhere;
using train_test::Experiment;
using train_test::primes;

/// A training on random targets. The loss of unseen samples falls, and rises when it overfits.
Experiment overfitting(Size patience = 0, Size validate_every = 1) {
  Experiment setup = primes();
  setup.training.num_epochs = 24;
  setup.training.learning_rate = 0.03;
  setup.data.validation_samples = 9;
  setup.training.patience = patience;
  setup.training.validate_every = validate_every;
  return setup;
}

/// Returns the number of validations after which PyTorch Lightning's EarlyStopping(mode="min",
/// min_delta=0) ends a training (lightning.pytorch.callbacks.early_stopping).
std::size_t validations_with_patience(const std::vector<EpochValidation>& all, Size patience) {
  double best_score = std::numeric_limits<double>::infinity();
  Size wait_count = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].result.loss < best_score) {
      best_score = all[i].result.loss;
      wait_count = 0;
    } else if (++wait_count >= patience) {
      return i + 1;
    }
  }
  return all.size();
}

TEST(EarlyStop, EndsWhereLightningDoes) {
  for (const Size every : {1, 2}) {
    const End whole = run<double>(overfitting(0, every), {});
    for (const Size patience : {1, 2, 4}) {
      SCOPED_TRACE(fmt::format("patience {}, every {}", patience, every));
      const std::size_t validations =
          validations_with_patience(whole.metrics.validations, patience);
      ASSERT_LT(validations, whole.metrics.validations.size());
      const End end = run<double>(overfitting(patience, every), {});
      EXPECT_EQ(end.metrics.validations.size(), validations);
      EXPECT_EQ(std::ssize(end.metrics.epoch_losses),
                whole.metrics.validations[validations - 1].epoch);
      EXPECT_TRUE(end.metrics.stopped_early);
      EXPECT_FALSE(end.metrics.stopped);
      EXPECT_TRUE(std::equal(end.metrics.epoch_losses.begin(), end.metrics.epoch_losses.end(),
                             whole.metrics.epoch_losses.begin()));
    }
  }
}

TEST(EarlyStop, IsTheSameOnEveryMesh) {
  const End alone = run<double>(overfitting(2), {});
  for (const auto& [what, setup] : some_strategies(overfitting(2), 8, 0)) {
    SCOPED_TRACE(what);
    const End end = run<double>(setup, {});
    EXPECT_EQ(end.metrics.epoch_losses.size(), alone.metrics.epoch_losses.size());
    EXPECT_TRUE(end.metrics.stopped_early);
  }
}

TEST(EarlyStop, ATrainingWithPatienceLeftCompletes) {
  Experiment setup = overfitting(2);
  setup.training.num_epochs =
      std::ssize(run<double>(setup, {}).metrics.epoch_losses);  // would end here
  const End end = run<double>(setup, {});
  EXPECT_FALSE(end.metrics.stopped_early || end.metrics.stopped);
  EXPECT_EQ(error_everywhere([&] {
              Trainer<double> trainer = train_test::trainer_of<double>(setup);
              DataConfig data = setup.data;
              data.validation_samples = 0;
              trainer.fit(data);
            }),
            "training.patience = 2: needs data.validation_samples");
}

TEST(EarlyStop, ALossThatIsNotFiniteIsNeverTheBest) {
  TrainingMetrics metrics;
  EXPECT_FALSE(metrics.best_validation());
  metrics.validations = {{1, {NAN}}, {2, {INFINITY}}};
  EXPECT_FALSE(metrics.best_validation());
  metrics.validations = {{1, {NAN}}, {2, {3}}, {3, {2}}, {4, {2}}, {5, {NAN}}};
  EXPECT_EQ(metrics.best_validation()->epoch, 3);
}

TEST(EarlyStop, AResumedTrainingEndsAtTheSameEpoch) {
  for (const auto& [what, setup] : some_strategies(overfitting(3), 3, 1)) {
    SCOPED_TRACE(what);
    const SharedDirectory directory;
    const CheckpointConfig all{.directory = directory.path(), .every_steps = 4, .keep = 0};
    const End whole = run<double>(setup, {.config = all});
    const Size steps = whole.metrics.steps,
               batches = steps / std::ssize(whole.metrics.epoch_losses);
    // After the best epoch, in the two epochs after it, and after the end.
    const Size best = whole.metrics.best_validation()->epoch * batches, later = steps / 4 * 4;
    for (const Size step : {best, later - 4, later, steps}) {
      const End resumed = run<double>(setup, {}, file_of(directory, step));
      EXPECT_EQ(resumed.metrics.steps, steps - step);
      EXPECT_TRUE(resumed.metrics.stopped_early);
      expect_same_end(resumed, whole);
    }
  }
}

TEST(EarlyStop, TheBestCheckpointIsKeptAndNamed) {
  for (const bool at_end : {true, false}) {
    SCOPED_TRACE(at_end);
    const SharedDirectory directory;
    const CheckpointConfig config{.directory = directory.path(), .at_end = at_end, .keep = 1};
    const Experiment setup = overfitting(3);
    const End end = run<double>(setup, {.config = config});
    const EpochValidation best = end.metrics.best_validation().value();
    const Size batches = end.metrics.steps / std::ssize(end.metrics.epoch_losses);
    EXPECT_EQ(end.metrics.best_checkpoint, file_of(directory, best.epoch * batches));
    EXPECT_EQ(end.metrics.last_checkpoint,
              at_end ? file_of(directory, end.metrics.steps) : end.metrics.best_checkpoint);
    EXPECT_TRUE(std::filesystem::exists(end.metrics.last_checkpoint));
    // Its parameters give the smallest loss.
    Experiment again = setup;
    again.training.patience = 0;
    again.training.num_epochs = 1;
    again.training.learning_rate = 0;
    again.training.optimizer.kind = OptimizerKind::sgd;
    const End from_best =
        run<double>(again, {.config = {.init_from = end.metrics.best_checkpoint}});
    EXPECT_EQ(from_best.metrics.validations.at(0).result.loss, best.result.loss);
  }
}

// Without patience, training goes on to the last epoch.
TEST(EarlyStop, KeepBestKeepsTheBestValidations) {
  const SharedDirectory directory;
  CheckpointConfig config{
      .directory = directory.path(), .at_end = false, .keep = 1, .keep_best = 2};
  config.every_steps = 3;  // also after epochs without a validation
  const End end = run<double>(overfitting(0, 2), {.config = config});
  std::vector<EpochValidation> all = end.metrics.validations;
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.result.loss < b.result.loss; });
  const Size batches = end.metrics.steps / std::ssize(end.metrics.epoch_losses);
  EXPECT_EQ(end.metrics.best_checkpoint, file_of(directory, all[0].epoch * batches));
  for (const std::size_t i : {0, 1})
    EXPECT_TRUE(std::filesystem::exists(file_of(directory, all[i].epoch * batches))) << i;
  EXPECT_FALSE(end.metrics.stopped_early);
}

}  // namespace
}  // namespace tessera
