// SPDX-License-Identifier: Apache-2.0
// Rounding and loss scaling in mixed precision.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>

#include "engine/error_everywhere.hpp"
#include "engine/one_rank.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::for_strategies;
using train_test::in_type;
using train_test::on_mesh;
using train_test::primes;
using train_test::relative_difference;
using train_test::roundoff;
using train_test::to_host;
using train_test::trained_alone;

template <class T>
class PrecisionOf : public testing::Test {};
using ShortTypes = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(PrecisionOf, ShortTypes);

/// The experiment table compares meshes with one rank in the same precision.
TYPED_TEST(PrecisionOf, RoundsButNotMuch) {
  Experiment base = primes(16);
  base.training.optimizer.kind = OptimizerKind::sgd;
  base.training.learning_rate = 0.1;
  const auto &narrow = trained_alone(in_type<TypeParam>(base)), &wide = trained_alone(base);
  EXPECT_GT(relative_difference(narrow.parameters, wide.parameters), roundoff<TypeParam> / 50);
  EXPECT_LE(relative_difference(narrow.losses, wide.losses), 20 * roundoff<TypeParam>);
  EXPECT_EQ(narrow.skipped_steps, 0);
}

TYPED_TEST(PrecisionOf, TrainerOfAnotherTypeIsRejected) {
  const Experiment setup = in_type<TypeParam>(primes(13));
  const std::string message =
      train_test::error_everywhere([&] { Trainer<float> trainer(setup.model, setup.training); });
  EXPECT_NE(message.find("distributed.mixed_precision"), std::string::npos) << message;
}

/// Returns the state that a skipped step must not change.
std::vector<double> state_of(const Engine<Float16>& engine) {
  std::vector<double> all = to_host(engine.parameters().flat());
  for (const double value : to_host(engine.optimizer().moments())) all.push_back(value);
  all.push_back(static_cast<double>(engine.optimizer().steps()));
  return all;
}

/// An engine, its batch, and a batch whose loss overflows on rank 0 only. The last rank has no
/// output column if `model` has more ranks than the output has columns.
struct Overflowing {
  explicit Overflowing(const Experiment& given)
      : config{given.model, given.data, given.training, {}},
        mesh(Communicator::world(), resolve_mesh(config, Communicator::world().size())),
        plan(make_plan(plan_input(config, mesh.shape()))),
        data(Dataset<float>::generate(plan, mesh.rank(), config.data)),
        engine(plan, mesh, StepOptions::of(config.training)) {}

  void good_step() { engine.step(data.batch(0), 0, 0.01); }
  void bad_step() {
    Batch<float> batch = data.batch(0);
    const Matrix<float> y("y", batch.y.extent(0), batch.y.extent(1));
    Kokkos::deep_copy(y, batch.y);
    if (mesh.rank() == 0) Kokkos::deep_copy(y, 1e9f);
    batch.y = y;
    engine.step(batch, 0, 0.01);
  }

  Config config;
  Mesh mesh;
  Plan plan;
  Dataset<float> data;
  Engine<Float16> engine;
};

TEST(LossScaling, AnOverflowOnOneRankSkipsTheStepOnAllOfThem) {
  Experiment base = in_type<Float16>(primes(16));
  base.training.clip.global_norm = 0.5;
  for_strategies(base, [&](const Experiment& setup, const std::string& what) {
    SCOPED_TRACE(what);
    Overflowing run(setup);
    run.good_step();
    const std::vector<double> before = state_of(run.engine);
    EXPECT_EQ(run.engine.optimizer().steps(), 1);
    run.bad_step();
    EXPECT_EQ(state_of(run.engine), before);
    EXPECT_EQ(run.engine.loss_scale().value(), 16384);
    EXPECT_EQ(run.engine.loss_scale().skipped_steps(), 1);
    run.good_step();
    EXPECT_NE(state_of(run.engine), before);
    EXPECT_EQ(run.engine.optimizer().steps(), 2);
    EXPECT_EQ(run.engine.loss_scale().skipped_steps(), 1);
  });
}

TEST(LossScaling, AnOverflowAtTheLeastScaleIsAnErrorOnAllRanks) {
  Overflowing run(
      on_mesh(in_type<Float16>(primes(16)), {{"fsdp", Communicator::world().size()}}, "fsdp"));
  for (int step = 0; step < 15; ++step) run.bad_step();
  EXPECT_EQ(run.engine.loss_scale().value(), 1);
  const std::string message =
      train_test::error_everywhere([&] { run.bad_step(); }, ExitCode::wrong_result);
  EXPECT_NE(message.find("gradient of step 16 is not finite"), std::string::npos) << message;
}

/// Without scaling, float16 would round these gradients to zero.
TEST(LossScaling, KeepsSmallGradients) {
  Experiment base = primes(16);
  base.training.optimizer.kind = OptimizerKind::sgd;
  base.training.num_epochs = 1;
  base.data.kind = DataKind::random;
  base.model.mlp.widths = {3, 5, 2000};
  base.training.batch_size = 16;
  const auto &narrow = trained_alone(in_type<Float16>(base)), &wide = trained_alone(base);
  // Elements of the loss's gradient are about 2 / (16 * 2000) = 6e-5 times a difference. Small ones
  // are less than the smallest normal number of float16, 6e-5.
  EXPECT_LE(relative_difference(narrow.parameters, wide.parameters), roundoff<Float16>);
}

}  // namespace
}  // namespace tessera
