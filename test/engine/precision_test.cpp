// SPDX-License-Identifier: Apache-2.0
// Mixed precision under every strategy: losses equal those of one rank in the same precision,
// traffic and memory are as planned, and all ranks skip the same steps.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/alias.hpp>

#include "engine/error_everywhere.hpp"
#include "engine/precision_support.hpp"
#include "engine/strategy_support.hpp"

namespace tessera {
namespace {

using train_test::expect_like_alone;
using train_test::Experiment;
using train_test::for_strategies;
using train_test::in_precision;
using train_test::primes;
using train_test::relative_difference;
using train_test::roundoff;
using train_test::ShortTraining;
using train_test::to_host;
using train_test::train_alone;
using train_test::train_short;

template <class T>
class PrecisionOf : public testing::Test {};
using ShortTypes = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(PrecisionOf, ShortTypes);

/// Expects that runs agree to a unit roundoff and that float32 differs by more.
template <class T>
void expect_like_one_rank_in_precision(const Experiment& base) {
  const ShortTraining alone = train_alone<T>(base), wide = train_alone<float>(base);
  EXPECT_GT(relative_difference(alone.parameters, wide.parameters), roundoff<T> / 50);
  EXPECT_LE(relative_difference(alone.losses, wide.losses), 20 * roundoff<T>);
  EXPECT_EQ(alone.skipped_steps, 0);
  for_strategies(in_precision<T>(base), [&](const Experiment& setup, const std::string& what) {
    SCOPED_TRACE(what);
    expect_like_alone<T>(train_short<T>(setup), alone);
  });
}

TYPED_TEST(PrecisionOf, TrainsLikeOneRankWithEvenAndUnevenBatchesAndMicrobatches) {
  for (const bool even : {true, false}) {
    Experiment base = primes(even ? 16 : 13);
    base.training.optimizer.kind = OptimizerKind::sgd;
    base.training.learning_rate = 0.1;
    base.training.microbatches = even ? 1 : 3;
    base.training.distributed.overlap = !even;
    base.training.distributed.bucket_bytes = even ? 1 << 20 : 300;
    SCOPED_TRACE(testing::Message() << "batch " << base.training.batch_size);
    expect_like_one_rank_in_precision<TypeParam>(base);
  }
}

TYPED_TEST(PrecisionOf, TrainsResidualsWithSplitRowsAndRecomputation) {
  for (const bool rows : {false, true}) {
    Experiment base = primes(13);
    base.model.kind = ModelKind::residual_mlp;
    base.model.mlp.widths.clear();
    base.model.mlp.activation = Activation::gelu;
    base.model.residual_mlp = {3, 11, 13, 3, 2};
    base.training.optimizer.kind = OptimizerKind::sgd;
    base.training.microbatches = 2;
    base.training.clip = {.global_norm = 0.5, .value = 0.3};
    const ShortTraining alone = train_alone<TypeParam>(base);
    EXPECT_EQ(alone.skipped_steps, 0);
    for_strategies(in_precision<TypeParam>(base), [&](Experiment setup, const std::string& what) {
      if (setup.training.distributed.mesh_axis_names.back() == "model")
        setup.training.distributed.sequence_parallel = rows;
      setup.training.activation_checkpointing.units = rows ? 2 : 0;
      SCOPED_TRACE(testing::Message() << what << ", rows " << rows);
      expect_like_alone<TypeParam>(train_short<TypeParam>(setup), alone);
    });
  }
}

TYPED_TEST(PrecisionOf, TrainsOnPipelines) {
  const Size ranks = Communicator::world().size();
  std::vector<train_test::Axes> meshes;
  if (ranks <= 4) meshes.push_back({{"pipeline", ranks}});
  if (ranks % 2 == 0 && ranks > 2)
    for (const char* beside : {"data", "fsdp", "model"})
      meshes.push_back({{"pipeline", 2}, {beside, ranks / 2}});
  Experiment base = primes(13);
  base.training.optimizer.kind = OptimizerKind::sgd;
  const ShortTraining alone = train_alone<TypeParam>(base);
  EXPECT_EQ(alone.skipped_steps, 0);
  for (const train_test::Axes& axes : meshes)
    for (const char* strategy : {"data", "zero1", "fsdp"})
      for (const PipelineSchedule schedule :
           {PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble}) {
        if (!train_test::suits(strategy, MeshShape(axes))) continue;
        Experiment setup = train_test::on_mesh(in_precision<TypeParam>(base), axes, strategy);
        setup.training.microbatches = 3;
        setup.training.distributed.schedule = schedule;
        SCOPED_TRACE(MeshShape(axes).to_string() + " " + strategy);
        expect_like_alone<TypeParam>(train_short<TypeParam>(setup), alone);
      }
}

TYPED_TEST(PrecisionOf, WarmStepAllocatesNothingAndReplicasStayEqual) {
  Experiment base = in_precision<TypeParam>(primes(13));
  base.training.microbatches = 2;
  base.training.check_replicas_every = 1;
  for_strategies(base, [&](const Experiment& setup, const std::string& what) {
    SCOPED_TRACE(what);
    train_test::expect_no_allocation_when_warm<TypeParam>(setup);
  });
}

TYPED_TEST(PrecisionOf, PredictsInFloat) {
  for_strategies(in_precision<TypeParam>(primes(13)), [&](const Experiment& setup,
                                                          const std::string& what) {
    SCOPED_TRACE(what);
    const train_test::Samples<float> all = train_test::samples_of<float>(setup);
    Trainer<TypeParam> trainer(setup.model, setup.training);
    trainer.fit(setup.data);
    const Matrix<float> predicted = trainer.predict(all.x);
    const std::vector<double> values = to_host(Vector<float>(predicted.data(), predicted.span()));
    const std::vector<double> targets = to_host(Vector<float>(all.y.data(), all.y.span()));
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      sum += (values[i] - targets[i]) * (values[i] - targets[i]);
    const double loss = trainer.evaluate(all.x, all.y);
    EXPECT_NEAR(loss, sum / static_cast<double>(values.size()), 1e-5 * loss);
  });
}

TYPED_TEST(PrecisionOf, TrainerOfAnotherTypeIsRejected) {
  const Experiment setup = in_precision<TypeParam>(primes(13));
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
  Experiment base = in_precision<Float16>(primes(16));
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
  for_strategies(
      in_precision<Float16>(primes(16)), [&](const Experiment& setup, const std::string& what) {
        SCOPED_TRACE(what);
        Overflowing run(setup);
        for (int step = 0; step < 15; ++step) run.bad_step();
        EXPECT_EQ(run.engine.loss_scale().value(), 1);
        const std::string message =
            train_test::error_everywhere([&] { run.bad_step(); }, ExitCode::wrong_result);
        EXPECT_NE(message.find("gradient of step 16 is not finite"), std::string::npos) << message;
      });
}

/// Without scaling, float16 would round these gradients to zero.
TEST(LossScaling, KeepsSmallGradients) {
  Experiment base = primes(16);
  base.training.optimizer.kind = OptimizerKind::sgd;
  base.training.num_epochs = 1;
  base.data.kind = DataKind::random;
  base.model.mlp.widths = {3, 5, 2000};
  base.training.batch_size = 16;
  const ShortTraining wide = train_alone<float>(base), narrow = train_alone<Float16>(base);
  // Elements of the loss's gradient are about 2 / (16 * 2000) = 6e-5 times a difference. Small ones
  // are less than the smallest normal number of float16, 6e-5.
  EXPECT_LE(relative_difference(narrow.parameters, wide.parameters), roundoff<Float16>);
}

}  // namespace
}  // namespace tessera
