// SPDX-License-Identifier: Apache-2.0
// A small physics-informed network against the exact solution.
#include <cmath>

#include <gtest/gtest.h>

#include <tessera/base/alias.hpp>
#include <tessera/nn/layers/layers.hpp>

#include "engine/training_support.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::Samples;

Experiment poisson_problem() {
  Experiment setup;
  setup.model.kind = ModelKind::pinn;
  setup.model.mlp.activation = Activation::tanh;
  setup.model.pinn = {.width = 20, .layers = 3};
  setup.data = {.kind = DataKind::poisson_points, .samples = 256, .validation_samples = 200};
  setup.training.loss = LossKind::poisson;
  setup.training.boundary_weight = 100;
  setup.training.optimizer.kind = OptimizerKind::adam;
  setup.training.batch_size = 32;
  setup.training.num_epochs = 100;
  setup.training.validate_every = 50;
  setup.training.learning_rate = 2e-2;
  setup.training.schedule = {.kind = ScheduleKind::cosine, .steps = 800};
  return setup;
}

/// |u - solution| / |solution| over the points inside, where the second row of y has the solution.
double solution_error(const Matrix<float>& prediction, const Matrix<float>& y) {
  const auto u = train_test::to_host(prediction), t = train_test::to_host(y);
  double error = 0, size = 0;
  for (std::size_t row = 0; row < t.size(); row += jet_rows) {
    error += std::pow(u[row] - t[row + 1], 2);
    size += std::pow(t[row + 1], 2);
  }
  return std::sqrt(error / size);
}

TEST(PinnTraining, ComesCloseToTheSolutionOnUnseenPoints) {
  const Experiment setup = poisson_problem();
  Trainer<float> trainer = train_test::trainer_of<float>(setup);
  const TrainingMetrics metrics = trainer.fit(setup.data);
  EXPECT_EQ(plan_violation(metrics), "");

  Experiment with_unseen = setup;
  with_unseen.data.samples += setup.data.validation_samples;
  const Samples<float> all = train_test::samples_of<float>(with_unseen);
  const Range unseen{setup.data.samples * jet_rows, setup.data.validation_samples * jet_rows};
  const double error =
      solution_error(trainer.predict(rows_of(all.x, unseen)), rows_of(all.y, unseen));
  EXPECT_LT(error, 0.1);  // about 0.04; the order of sums changes it slightly
  ASSERT_EQ(metrics.validations.size(), 2u);
  EXPECT_GT(metrics.validations[0].result.solution_error.value(), error);
  EXPECT_NEAR(metrics.validations[1].result.solution_error.value(), error, 1e-5);
}

}  // namespace
}  // namespace tessera
