// SPDX-License-Identifier: Apache-2.0
// Targets that training.ignore_index excludes: the loss is the mean over the others, on every mesh.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/engine/local_tensors.hpp>

#include "engine/precision_support.hpp"
#include "engine/serial_training.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::for_strategies;
using train_test::on_mesh;
using train_test::relative_difference;
using train_test::Samples;
using train_test::samples_of;
using train_test::to_host;
using train_test::to_table;
using train_test::trainer_of;

Size world_ranks() { return Communicator::world().size(); }

/// Returns a transformer with three classes, of which one in three targets is ignored.
Experiment ignoring() {
  Experiment setup =
      train_test::of_kind(ModelKind::transformer, DataKind::copy_task, LossKind::cross_entropy);
  const Size heads = world_ranks() == 8 || world_ranks() == 4 ? world_ranks() : 6;
  setup.model.transformer = {.vocabulary = 3,
                             .context = 5,
                             .width = 2 * heads,
                             .heads = heads,
                             .blocks = 2,
                             .inner_width = 13};
  setup.training.ignore_index = 1;
  return setup;
}

Size counted(const std::vector<double>& targets, double ignored) {
  return static_cast<Size>(
      std::count_if(targets.begin(), targets.end(), [=](double t) { return t != ignored; }));
}

TEST(IgnoredTargets, TrainLikeOneRankUnderEveryStrategy) {
  for (const OptimizerKind optimizer : {OptimizerKind::sgd, OptimizerKind::adamw}) {
    Experiment base = ignoring();
    base.training.optimizer.kind = optimizer;
    if (optimizer == OptimizerKind::adamw) base.training.learning_rate = 0.01;
    base.training.microbatches = optimizer == OptimizerKind::sgd ? 1 : 3;
    for_strategies(base, [&](const Experiment& one, const std::string& what) {
      SCOPED_TRACE(testing::Message() << what << ", " << name_of(optimizer));
      train_test::expect_trains_like_its_layers(one);
    });
  }
}

TEST(IgnoredTargets, TrainLikeOneRankOnAPipelineAndWithSplitClassesAndRows) {
  std::vector<train_test::Axes> meshes{{{"model", world_ranks()}}};
  if (world_ranks() < 4) meshes.push_back({{"pipeline", world_ranks()}});
  if (world_ranks() % 2 == 0) meshes.push_back({{"pipeline", 2}, {"data", world_ranks() / 2}});
  for (const train_test::Axes& axes : meshes)
    for (const PipelineSchedule schedule :
         {PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble}) {
      const bool has_stages = axes.front().name == "pipeline";
      if (!has_stages && schedule != PipelineSchedule::one_f_one_b) continue;
      Experiment one = on_mesh(ignoring(), axes, "data");
      one.training.microbatches = 3;
      one.training.distributed.schedule = schedule;
      one.training.distributed.sequence_parallel = !has_stages && world_ranks() > 1;
      SCOPED_TRACE(MeshShape(axes).to_string());
      train_test::expect_trains_like_its_layers(one);
    }
}

TEST(IgnoredTargets, MixedPrecision) {
  Experiment setup = on_mesh(ignoring(), {{"fsdp", world_ranks()}}, "fsdp");
  setup.model.dtype = DType::float32;
  setup.training.microbatches = 2;
  setup = train_test::in_precision<BFloat16>(setup);
  train_test::expect_like_alone<BFloat16>(train_test::train_short<BFloat16>(setup),
                                          train_test::train_alone<BFloat16>(setup));
  setup = train_test::in_precision<Float16>(setup);
  train_test::expect_like_alone<Float16>(train_test::train_short<Float16>(setup),
                                         train_test::train_alone<Float16>(setup));
}

/// The gradient of the sum of the losses is that of their mean times the number of targets.
TEST(IgnoredTargets, SumAndMeanOfGradientsDifferByTheTargetsThatCount) {
  Experiment setup = on_mesh(ignoring(), {{"data", world_ranks()}}, "zero2");
  setup.training.num_epochs = 1;
  setup.data.samples = setup.training.batch_size;
  setup.training.microbatches = 2;
  const auto gradient = [&](GradientReduceType type) {
    setup.training.distributed.gradient_reduce_type = type;
    Trainer<double> trainer = trainer_of<double>(setup);
    trainer.fit(setup.data);
    return to_host(trainer.gather(TensorRole::gradient));
  };
  const std::vector<double> targets = to_table(samples_of<double>(setup).y).values;
  ASSERT_LT(counted(targets, 1), static_cast<Size>(targets.size()));
  std::vector<double> mean = gradient(GradientReduceType::mean);
  for (double& g : mean) g *= static_cast<double>(counted(targets, 1));
  EXPECT_LE(relative_difference(gradient(GradientReduceType::sum), mean), 1e-12);
}

/// Returns the mean of log sum exp(p) - p[t] over the targets t that are not ignored.
double mean_loss(const std::vector<double>& logits, const std::vector<double>& targets,
                 std::size_t classes, double ignored) {
  double sum = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == ignored) continue;
    double total = 0;
    for (std::size_t j = 0; j < classes; ++j) total += std::exp(logits[i * classes + j]);
    sum += std::log(total) - logits[i * classes + static_cast<std::size_t>(targets[i])];
  }
  return sum / static_cast<double>(counted(targets, ignored));
}

/// Batches of different sizes have different numbers of targets that count.
TEST(IgnoredTargets, ValidationAndEvaluationAreMeansOverAllTargetsThatCount) {
  Experiment base = ignoring();
  base.data.validation_samples = 2 * base.training.batch_size + 1;
  base.training.microbatches = 3;
  Experiment with_unseen = base;
  with_unseen.data.samples += base.data.validation_samples;
  const Samples<double> all = samples_of<double>(with_unseen);
  const Size context = base.model.transformer.context;
  const auto rows = [&](const Matrix<double>& of) {
    return rows_of(of, {base.data.samples * context, base.data.validation_samples * context});
  };
  for_strategies(base, [&](const Experiment& one, const std::string& what) {
    SCOPED_TRACE(what);
    Trainer<double> trainer = trainer_of<double>(one);
    const TrainingMetrics metrics = trainer.fit(one.data);
    EXPECT_EQ(plan_violation(metrics), "");
    const double expected = mean_loss(to_table(trainer.predict(rows(all.x))).values,
                                      to_table(rows(all.y)).values, 3, 1);
    EXPECT_NEAR(metrics.validations.back().result.loss, expected, 1e-12);
    EXPECT_NEAR(trainer.evaluate(rows(all.x), rows(all.y)), expected, 1e-12);
  });
}

/// Terms that layers add count for every position; evaluations leave out those of routers.
TEST(IgnoredTargets, DoNotChangeTheTermsOfRouters) {
  Experiment base = ignoring();
  base.model.transformer.experts = base.model.transformer.heads;
  base.model.transformer.balance_loss = 0.5;
  base.training.num_epochs = 1;
  base.training.microbatches = 2;
  const Samples<double> all = samples_of<double>(base);
  for_strategies(base, [&](const Experiment& one, const std::string& what) {
    SCOPED_TRACE(what);
    train_test::expect_trains_like_its_layers(one);
    Trainer<double> trainer = trainer_of<double>(one);
    trainer.fit(one.data);
    const double expected =
        mean_loss(to_table(trainer.predict(all.x)).values, to_table(all.y).values, 3, 1);
    EXPECT_NEAR(trainer.evaluate(all.x, all.y), expected, 1e-12);
  });
}

/// A mark that is no class number, as in most data sets with padding.
TEST(IgnoredTargets, ABatchWithoutOthersHasLossAndGradientZero) {
  Experiment setup = on_mesh(ignoring(), {{"data", world_ranks()}}, "data");
  setup.training.ignore_index = -100;
  setup.training.num_epochs = 1;
  setup.data.samples = setup.training.batch_size;
  const Samples<double> all = samples_of<double>(setup);
  const Matrix<double> y("y", all.y.extent(0), 1);
  Kokkos::deep_copy(y, -100);
  Trainer<double> trainer = trainer_of<double>(setup);
  EXPECT_EQ(trainer.fit(all.x, y).epoch_losses, std::vector<double>{0});
  EXPECT_EQ(trainer.evaluate(all.x, y), 0);
  for (const double g : to_host(trainer.gather(TensorRole::gradient))) EXPECT_EQ(g, 0);

  // One target counts: the loss is its own.
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
  host(7, 0) = 2;
  Kokkos::deep_copy(y, host);
  const double expected =
      mean_loss(to_table(trainer.predict(all.x)).values, to_table(y).values, 3, -100);
  EXPECT_NEAR(trainer.evaluate(all.x, y), expected, 1e-12);
  EXPECT_NEAR(trainer.fit(all.x, y).epoch_losses.front(), expected, 1e-12);
}

TEST(IgnoredTargets, ACountOfARanksOwnTargetsIsSeen) {
  if (world_ranks() == 1) GTEST_SKIP() << "one rank has all targets";
  Experiment setup = on_mesh(ignoring(), {{"data", world_ranks()}}, "data");
  setup.training.num_epochs = 1;
  setup.data.samples = setup.training.batch_size;
  const Config config{setup.model, setup.data, setup.training, {}};
  const Mesh mesh(Communicator::world(), resolve_mesh(config, world_ranks()));
  const Plan plan = make_plan(plan_input(config, mesh.shape()));
  const auto difference = [&](const Plan& changed) {
    Engine<double> engine(changed, mesh, StepOptions::of(setup.training));
    const auto data = Dataset<double>::generate(plan, mesh.rank(), setup.data);
    engine.step(data.batch(0), 0, setup.training.learning_rate);
    return relative_difference(to_host(whole_tensors(plan, mesh, engine, TensorRole::gradient)),
                               train_test::train_alone(plan.input.model, setup).gradients);
  };
  EXPECT_LE(difference(plan), 1e-11);
  Plan wrong = plan;
  std::get<CountTargets>(wrong.stages.front().actions.front().action).ranks = RankSet::model;
  EXPECT_GT(difference(wrong), 1e-3);
}

TEST(IgnoredTargets, WarmStepsAllocateNothing) {
  train_test::expect_no_allocation_when_warm<double>(
      on_mesh(ignoring(), {{"fsdp", world_ranks()}}, "fsdp"));
}

}  // namespace
}  // namespace tessera
