// SPDX-License-Identifier: Apache-2.0
// Losses of targets that training.ignore_index excludes: means over the others.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "engine/serial_training.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::for_strategies;
using train_test::on_mesh;
using train_test::Samples;
using train_test::samples_of;
using train_test::to_host;
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
    const double expected =
        mean_loss(to_host(trainer.predict(rows(all.x))), to_host(rows(all.y)), 3, 1);
    EXPECT_NEAR(metrics.validations.back().result.loss, expected, 1e-12);
    EXPECT_NEAR(trainer.evaluate(rows(all.x), rows(all.y)), expected, 1e-12);
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
  const double expected = mean_loss(to_host(trainer.predict(all.x)), to_host(y), 3, -100);
  EXPECT_NEAR(trainer.evaluate(all.x, y), expected, 1e-12);
  EXPECT_NEAR(trainer.fit(all.x, y).epoch_losses.front(), expected, 1e-12);
}

}  // namespace
}  // namespace tessera
