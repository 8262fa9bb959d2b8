// SPDX-License-Identifier: Apache-2.0
// Inputs, results and errors of fit().
#include <string>

#include <gtest/gtest.h>

#include <tessera/base/alias.hpp>

#include "engine/error_everywhere.hpp"
#include "engine/strategy_support.hpp"

namespace tessera {
namespace {

using train_test::error_everywhere;
using train_test::Experiment;
using train_test::primes;
using train_test::Samples;
using train_test::samples_of;
using train_test::trainer_of;

template <class T>
class Fit : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Fit, Types);

TYPED_TEST(Fit, GivenArraysTrainAsGeneratedDataDo) {
  for (DataKind kind : {DataKind::random, DataKind::sum_of_squares}) {
    Experiment setup = primes();
    setup.data.kind = kind;
    setup.data.seed = 7;
    if (kind == DataKind::sum_of_squares) setup.model.mlp.widths.back() = 1;
    const Samples<TypeParam> all = samples_of<TypeParam>(setup);
    Trainer<TypeParam> trainer = trainer_of<TypeParam>(setup);
    const TrainingMetrics generated = trainer.fit(setup.data);
    trainer.reset();
    const TrainingMetrics given = trainer.fit(all.x, all.y);
    const double tolerance = sizeof(TypeParam) == 4 ? 1e-6 : 1e-14;
    EXPECT_LE(train_test::relative_difference(given.epoch_losses, generated.epoch_losses),
              tolerance);
    EXPECT_EQ(given.steps, generated.steps);
    EXPECT_EQ(given.measured.traffic, generated.measured.traffic);
    EXPECT_EQ(plan_violation(given), "");
    const MemoryPlan memory = trainer.plan(setup.data.samples).memory(trainer.mesh().rank());
    EXPECT_EQ(given.measured.device_bytes, memory.total() - memory.data) << "arrays are not copied";
  }
}

TYPED_TEST(Fit, AfterAResetStartsFromTheInitialParameters) {
  const Experiment setup = primes();
  Trainer<TypeParam> trainer = trainer_of<TypeParam>(setup);
  const auto first = trainer.fit(setup.data).epoch_losses;
  trainer.reset();
  EXPECT_EQ(trainer.fit(setup.data).epoch_losses, first);
}

// Parameters, moments, Adam's count of steps and the schedule continue.
TYPED_TEST(Fit, ASecondCallGoesOn) {
  Experiment setup = primes();
  setup.training.optimizer.kind = OptimizerKind::adam;
  setup.training.schedule = {.kind = ScheduleKind::exponential, .steps = 2, .rate = 0.5};
  setup.training.check_replicas_every = 2;
  Trainer<TypeParam> twice = trainer_of<TypeParam>(setup);
  std::vector<double> losses = twice.fit(setup.data).epoch_losses;
  const TrainingMetrics second = twice.fit(setup.data);
  EXPECT_EQ(plan_violation(second), "");
  EXPECT_EQ(second.steps, 6);
  losses.insert(losses.end(), second.epoch_losses.begin(), second.epoch_losses.end());
  setup.training.num_epochs *= 2;
  EXPECT_EQ(trainer_of<TypeParam>(setup).fit(setup.data).epoch_losses, losses);
}

TYPED_TEST(Fit, ASecondCallTakesOtherData) {
  const Experiment setup = primes();
  Trainer<TypeParam> trainer = trainer_of<TypeParam>(setup);
  const double trained = trainer.fit(setup.data).final_loss();
  DataConfig more = setup.data;
  more.samples = 5 * setup.training.batch_size + 1;
  const TrainingMetrics metrics = trainer.fit(more);
  EXPECT_EQ(plan_violation(metrics), "");
  EXPECT_EQ(metrics.steps, 2 * 6);
  EXPECT_NE(metrics.initial_loss(), trained);
}

TYPED_TEST(Fit, EvaluatesFewRowsAndLeavesTheTrainingAlone) {
  Experiment setup = primes(13);
  setup.training.microbatches = 3;
  const Samples<TypeParam> all = samples_of<TypeParam>(setup);
  Trainer<TypeParam> trainer = trainer_of<TypeParam>(setup);
  trainer.fit(setup.data);
  const std::vector<double> parameters = train_test::to_host(trainer.gather());
  // Fewer rows than a batch, and than ranks.
  const Matrix<TypeParam> x = rows_of(all.x, {0, 2}), y = rows_of(all.y, {0, 2});
  const std::vector<double> p = train_test::to_host(trainer.predict(x)), t = train_test::to_host(y);
  double sum = 0;
  for (std::size_t i = 0; i < t.size(); ++i) sum += (p[i] - t[i]) * (p[i] - t[i]);
  EXPECT_NEAR(trainer.evaluate(x, y), sum / static_cast<double>(t.size()), 1e-5 * sum);
  EXPECT_EQ(train_test::to_host(trainer.gather()), parameters);
}

TEST(FitErrors, NothingIsEvaluatedBeforeItIsTrained) {
  Trainer<float> trainer = trainer_of<float>(primes());
  const Matrix<float> x("x", 20, 3);
  EXPECT_EQ(error_everywhere([&] { trainer.predict(x); }),
            "trainer: nothing has been trained yet; call fit()");
}

TEST(FitReports, ReportsEveryEpoch) {
  Experiment setup = primes();
  setup.training.num_epochs = 3;
  Trainer<float> trainer = trainer_of<float>(setup);
  std::vector<Size> epochs;
  std::vector<double> losses;
  const TrainingMetrics metrics = trainer.fit(setup.data, [&](Size epoch, double loss) {
    epochs.push_back(epoch);
    losses.push_back(loss);
  });
  EXPECT_EQ(epochs, (std::vector<Size>{1, 2, 3}));
  EXPECT_EQ(losses, metrics.epoch_losses);
  EXPECT_GT(metrics.stepping_seconds, 0);
  EXPECT_GE(metrics.wall_seconds, metrics.stepping_seconds);
  train_test::expect_same_on_all_ranks(trainer.mesh().world(),
                                       {metrics.stepping_seconds, metrics.wall_seconds}, "times");
}

TEST(FitErrors, RefusesArraysOfOtherShapes) {
  Trainer<float> trainer = trainer_of<float>(primes());  // 3 in, 2 out, batches of 13
  const auto refused = [&](Size x_rows, Size x_cols, Size y_rows, Size y_cols) {
    const Matrix<float> x("x", x_rows, x_cols), y("y", y_rows, y_cols);
    return error_everywhere([&] { trainer.fit(x, y); });
  };
  EXPECT_EQ(refused(20, 4, 20, 2), "columns of x = 4: must be the model's input width, 3");
  EXPECT_EQ(refused(20, 3, 20, 1), "columns of y = 1: must be the width of the model's targets, 2");
  EXPECT_EQ(refused(20, 3, 19, 2), "rows of y = 19: must be the rows of the planned samples, 20");
  EXPECT_NE(refused(12, 3, 12, 2).find("training.batch_size = 13: must be at most"),
            std::string::npos);
  EXPECT_NE(refused(0, 3, 0, 2).find("must be positive"), std::string::npos);
}

TEST(FitErrors, ArraysWrongOnOneRankOnlyStopAllRanks) {
  Trainer<float> trainer = trainer_of<float>(primes());
  const int ranks = trainer.mesh().world().size();
  const bool odd = trainer.mesh().world().rank() == ranks - 1;
  const Matrix<float> narrow("x", 20, odd ? 2 : 3), fewer_x("x", odd ? 12 : 20, 3);
  const Matrix<float> y("y", 20, 2), fewer_y("y", odd ? 12 : 20, 2);
  EXPECT_EQ(error_everywhere([&] { trainer.fit(narrow, y); }),
            "columns of x = 2: must be the model's input width, 3");
  EXPECT_NE(error_everywhere([&] { trainer.fit(fewer_x, fewer_y); }).find("12"), std::string::npos);
}

// Each rank's arrays are valid, but ranks would take different numbers of steps.
TEST(FitErrors, ArraysOfDifferentLengthStopAllRanks) {
  Trainer<float> trainer = trainer_of<float>(primes());
  const Communicator& world = trainer.mesh().world();
  if (world.size() == 1) return;
  const Size rows = world.rank() == world.size() - 1 ? 40 : 20;
  const Matrix<float> x("x", rows, 3), y("y", rows, 2);
  EXPECT_NE(error_everywhere([&] { trainer.fit(x, y); }).find("on every rank"), std::string::npos);
}

// Each rank's configuration is valid by itself.
TEST(FitErrors, ConfigurationsThatDifferStopAllRanks) {
  const Communicator world = Communicator::world();
  if (world.size() == 1) return;
  Experiment setup = primes();
  Experiment other = setup;
  other.training.batch_size = 11;
  other.data.seed = 7;
  const bool odd = world.rank() > 0;
  EXPECT_EQ(
      error_everywhere([&] { trainer_of<float>(odd ? other : setup); }),
      "training.batch_size = 11: on rank 1; must be the same on every rank, but rank 0 has 13");
  Experiment other_rules = setup;
  other_rules.training.distributed.mesh_rules = {{"mlp", {}}};
  EXPECT_EQ(
      error_everywhere([&] { trainer_of<float>(odd ? other_rules : setup); }),
      "distributed.mesh_rules = {mlp = []}: on rank 1; must be the same on every rank, but rank 0 "
      "has {}");
  CommOptions comm;
  comm.timeout_seconds = odd ? 0 : 60;
  EXPECT_EQ(
      error_everywhere([&] { Trainer<float>(setup.model, setup.training, comm); }),
      "comm.timeout_seconds = 0.0: on rank 1; must be the same on every rank, but rank 0 has 60.0");
  Trainer<float> trainer = trainer_of<float>(setup);
  EXPECT_EQ(error_everywhere([&] { trainer.fit(odd ? other.data : setup.data); }),
            "data.seed = 7: on rank 1; must be the same on every rank, but rank 0 has 0");
}

TEST(FitErrors, RefusesAnotherScalarType) {
  Experiment setup = primes();
  setup.model.dtype = DType::float32;
  EXPECT_EQ(error_everywhere([&] { Trainer<double>(setup.model, setup.training); }),
            "model.dtype = float32: must be float64, the type of this trainer");
}

TEST(FitErrors, DivergenceStopsAllRanksWithTheSameWords) {
  for (bool overlap : {false, true}) {
    Experiment setup = primes();
    setup.model.mlp.activation = Activation::relu;
    setup.training.optimizer.kind = OptimizerKind::sgd;
    setup.training.learning_rate = 1e30;
    setup.training.distributed.overlap = overlap;
    Trainer<float> trainer = trainer_of<float>(setup);
    const std::string message =
        error_everywhere([&] { trainer.fit(setup.data); }, ExitCode::wrong_result);
    EXPECT_NE(message.find("training diverged: the loss of epoch 1 is "), std::string::npos)
        << message;
  }
}

}  // namespace
}  // namespace tessera
