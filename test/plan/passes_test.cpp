// SPDX-License-Identifier: Apache-2.0
// The naive list can be executed: each pass over it that is left out changes no bit.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/train/session.hpp>

#include "engine/strategy_support.hpp"

namespace tessera {
namespace {

using train_test::Experiment;

/// Returns the losses of two epochs, whose batches see the parameters of all steps before them.
std::vector<double> losses_with(const Experiment& setup, const PlanPasses& passes) {
  const Trainer<float> trainer = train_test::trainer_of<float>(setup);
  const Mesh& mesh = trainer.mesh();
  const Plan plan = make_plan(trainer.plan(setup.data.samples).input, passes);
  const auto all = train_test::samples_of<float>(setup);
  TrainingSession<float> session(setup.training, plan, mesh, [&](const Plan& whole) {
    return TrainingData<float>{Dataset<float>::wrap(whole, mesh.rank(), all.x, all.y)};
  });
  std::vector<double> losses = session.run_epoch();
  for (const double loss : session.run_epoch()) losses.push_back(loss);
  return losses;
}

void expect_equal_bits(const Experiment& setup) {
  const std::vector<double> all = losses_with(setup, {});
  const std::vector<std::pair<const char*, bool PlanPasses::*>> passes{
      {"split_weights", &PlanPasses::split_weights},
      {"drop", &PlanPasses::drop},
      {"join", &PlanPasses::join},
      {"share_memory", &PlanPasses::share_memory}};
  PlanPasses naive;
  for (const auto& [name, pass] : passes) {
    PlanPasses without;
    without.*pass = naive.*pass = false;
    EXPECT_EQ(losses_with(setup, without), all) << "without " << name;
  }
  EXPECT_EQ(losses_with(setup, naive), all) << "the naive list";
}

TEST(PlanPasses, ChangeNoBit) {
  const Size ranks = Communicator::world().size();
  Experiment setup = train_test::primes(13);
  setup.model.kind = ModelKind::residual_mlp;
  setup.model.mlp.widths.clear();
  setup.model.residual_mlp = {3, 11, 13, 3, 2};
  setup.data.samples = 26;
  setup.training.microbatches = 2;
  for (const Recomputation& recomputation :
       {Recomputation{.units = 1}, {.what = Recomputed::cheap}, {.what = Recomputed::block}}) {
    SCOPED_TRACE(name_of(recomputation.what));
    setup.training.activation_checkpointing = recomputation;
    setup.training.distributed.sequence_parallel = ranks > 1;
    expect_equal_bits(train_test::on_mesh(setup, {{"model", ranks}}, "data"));
  }
  if (ranks > 4) return;
  setup.training.distributed.sequence_parallel = false;
  setup.training.distributed.schedule = PipelineSchedule::zero_bubble;
  expect_equal_bits(train_test::on_mesh(setup, {{"pipeline", ranks}}, "data"));
}

}  // namespace
}  // namespace tessera
