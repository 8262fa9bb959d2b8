// SPDX-License-Identifier: Apache-2.0
// What is particular to variational autoencoders, on any number of ranks. That they train like one
// rank under every strategy is in models_test.cpp.
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/config/to_plan_input.hpp>

#include "device_data.hpp"
#include "engine/error_everywhere.hpp"
#include "engine/serial_training.hpp"

namespace tessera {
namespace {

using train_test::Experiment;

/// Two batches and a smaller one in each of two epochs.
Experiment small_vae() {
  Experiment setup = train_test::primes(7);
  setup.model.kind = ModelKind::vae;
  setup.model.mlp.widths.clear();
  setup.model.vae = {.input_width = 9, .hidden = {7, 5}, .latent = 3, .beta = 2};
  setup.model.dtype = DType::float64;
  setup.training.optimizer.kind = OptimizerKind::sgd;
  setup.training.loss = LossKind::bce;
  setup.data.kind = DataKind::blobs;
  return setup;
}

TEST(Vae, TrainsWithColumnsInEveryLayerOfTheEncoder) {
  const Size ranks = Communicator::world().size();
  Experiment setup = train_test::on_mesh(small_vae(), {{"model", ranks}}, "data");
  setup.training.distributed.parameter_specs = {{"encoder1/kernel", "P(None, 'model')"},
                                                {"encoder2/kernel", "P(None, 'model')"}};
  train_test::expect_trains_like_its_layers(setup);
}

TEST(Vae, TrainsOnSumsOfGradientsAsOnTheirMean) {
  const Size ranks = Communicator::world().size();
  Experiment setup = train_test::on_mesh(small_vae(), {{"data", ranks}}, "data");
  setup.data.samples = 14;  // batches of 7, by which the sum is larger
  const train_test::TrainedAlone alone = train_test::train_alone(make_model(setup.model), setup);
  setup.training.distributed.gradient_reduce_type = GradientReduceType::sum;
  setup.training.learning_rate /= 7;
  Trainer<double> trainer = train_test::trainer_of<double>(setup);
  trainer.fit(setup.data);
  EXPECT_LE(
      train_test::relative_difference(train_test::to_host(trainer.gather()), alone.parameters),
      1e-11);
}

TEST(Vae, AnEvaluationHasBothTermsOfTheLoss) {
  const Size ranks = Communicator::world().size();
  for (const char* axis : {"fsdp", "pipeline"}) {
    if (axis == std::string("pipeline") && ranks > 4) continue;
    SCOPED_TRACE(axis);
    Experiment setup = train_test::on_mesh(small_vae(), {{axis, ranks}}, "fsdp");
    if (axis == std::string("pipeline")) setup.training.distributed.strategy = Strategy::data;
    setup.training.microbatches = 3;
    Trainer<double> trainer = train_test::trainer_of<double>(setup);
    trainer.fit(setup.data);
    const train_test::Samples<double> all = train_test::samples_of<double>(setup);
    const Matrix<double> x = rows_of(all.x, {0, 7});
    test::SerialModel<double> alone(make_model(setup.model), 7, LossKind::bce);
    Kokkos::deep_copy(alone.parameters(), trainer.gather());
    alone.set_step(6);  // of which each drew noise of its own
    const double expected = alone.loss(x, x);
    EXPECT_GT(train_test::to_host(alone.loss_sum())[1], 0);
    EXPECT_NEAR(trainer.evaluate(x, x), expected, 1e-12 * expected);
    EXPECT_NEAR(trainer.evaluate(x, x), expected, 1e-12 * expected);  // nothing is left behind
  }
}

/// More than two batches, so that draws of another batch would show twice.
TEST(Vae, SamplesOfItsOwnAreDecodedDraws) {
  const Size ranks = Communicator::world().size();
  constexpr Size count = 17;
  for (const char* axis : {"fsdp", "model", "pipeline"}) {
    if (axis == std::string("pipeline") && ranks > 4) continue;
    SCOPED_TRACE(axis);
    Experiment setup = train_test::on_mesh(small_vae(), {{axis, ranks}}, "fsdp");
    if (axis != std::string("fsdp")) setup.training.distributed.strategy = Strategy::data;
    setup.training.microbatches = 3;
    Trainer<double> trainer = train_test::trainer_of<double>(setup);
    trainer.fit(setup.data);
    const std::vector<double> drawn = test::to_host(trainer.sample(count));
    ASSERT_EQ(drawn.size(), static_cast<std::size_t>(9 * count));
    test::SerialModel<double> alone(make_model(setup.model), count, LossKind::bce);
    Kokkos::deep_copy(alone.parameters(), trainer.gather());
    alone.set_step(6);
    alone.draw_from_prior();
    const Matrix<double> nothing("nothing", count, 9);
    alone.loss(nothing, nothing);
    EXPECT_LE(train_test::relative_difference(drawn, test::to_host(alone.output())), 1e-12);
    std::set<double> first_columns;
    for (Size i = 0; i < count; ++i) first_columns.insert(drawn[static_cast<std::size_t>(9 * i)]);
    EXPECT_EQ(first_columns.size(), static_cast<std::size_t>(count));
  }
}

TEST(Vae, OnlyModelsThatDrawHaveSamplesOfTheirOwn) {
  Experiment setup = train_test::primes(7);
  Trainer<double> trainer = train_test::trainer_of<double>(
      train_test::on_mesh(setup, {{"data", Communicator::world().size()}}, "data"));
  trainer.fit(setup.data);
  EXPECT_EQ(train_test::error_everywhere([&] { trainer.sample(3); }),
            "trainer: this model has no latent variables, so it cannot generate samples");
}

/// In segments of three units the draw lies within one, and is computed again.
TEST(Vae, ComputingAgainAddsNoDivergence) {
  const Size ranks = Communicator::world().size();
  for (const Size microbatches : {1, 3}) {
    SCOPED_TRACE(testing::Message() << microbatches << " microbatches");
    Experiment setup = train_test::on_mesh(small_vae(), {{"fsdp", ranks}}, "fsdp");
    setup.training.microbatches = microbatches;
    setup.training.activation_checkpointing.units = 3;
    const Plan plan = make_plan(
        plan_input({setup.model, setup.data, setup.training, {}}, MeshShape({{"fsdp", ranks}})));
    Size draws = 0, draws_again = 0;
    const StagePlan& stage = plan.stages.front();
    for_each_action(stage.actions, stage.repeated, [&](std::size_t number, Size) {
      const Action& action = stage.actions[number];
      if (!action.is(StepOperation::forward) ||
          plan.input.model.layers[action.index].name != "latent/output")
        return;
      ++draws;
      draws_again += action.again;
    });
    EXPECT_EQ(draws, 2 * microbatches);
    EXPECT_EQ(draws_again, microbatches);
    train_test::expect_trains_like_its_layers(setup);
  }
}

TEST(Vae, LearnsBlobsInEveryType) {
  const Size ranks = Communicator::world().size();
  Experiment setup = train_test::on_mesh(small_vae(), {{"fsdp", ranks}}, "fsdp");
  setup.model.dtype = DType::float32;
  setup.model.mlp.activation = Activation::relu;
  setup.model.vae = {.input_width = 64, .hidden = {32}, .latent = 4};
  setup.data.samples = 128;
  setup.training.batch_size = 32;
  setup.training.num_epochs = 15;
  setup.training.learning_rate = 3e-3;
  setup.training.optimizer.kind = OptimizerKind::adam;
  const auto expect_learns = [&](auto trainer) {
    const TrainingMetrics metrics = trainer.fit(setup.data);
    EXPECT_LT(metrics.final_loss(), 0.85 * metrics.initial_loss());
    EXPECT_EQ(plan_violation(metrics), "");
    return metrics.final_loss();
  };
  const double expected = expect_learns(Trainer<float>(setup.model, setup.training));
  setup.training.distributed.mixed_precision = MixedPrecision::bf16;
  EXPECT_NEAR(expect_learns(Trainer<BFloat16>(setup.model, setup.training)), expected,
              0.02 * expected);
  setup.training.distributed.mixed_precision = MixedPrecision::fp16;
  EXPECT_NEAR(expect_learns(Trainer<Float16>(setup.model, setup.training)), expected,
              0.02 * expected);
}

}  // namespace
}  // namespace tessera
