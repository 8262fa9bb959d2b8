// SPDX-License-Identifier: Apache-2.0
// Recomputed activations change no bit, and traffic and memory are as planned.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/strategy_support.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::for_strategies;
using train_test::primes;

struct FitResult {
  std::vector<double> losses, parameters;
};

template <class T>
FitResult train(const Experiment& setup) {
  Trainer<T> trainer = train_test::trainer_of<T>(setup);
  const TrainingMetrics metrics = trainer.fit(setup.data);
  EXPECT_EQ(plan_violation(metrics), "");
  return {metrics.epoch_losses, train_test::to_host(trainer.gather())};
}

template <class T>
void expect_no_bit_changes(Experiment setup) {
  const FitResult kept = train<T>(setup);
  for (const Size units : {1, 2, 3}) {
    SCOPED_TRACE(testing::Message() << "segments of " << units);
    setup.training.activation_checkpointing.units = units;
    const FitResult again = train<T>(setup);
    EXPECT_EQ(again.losses, kept.losses);
    EXPECT_EQ(again.parameters, kept.parameters);
  }
}

TEST(Recomputation, ChangesNoBitUnderAnyStrategy) {
  for (const bool overlap : {false, true}) {
    Experiment base = primes(13);
    base.model.mlp.activation = overlap ? Activation::gelu : Activation::tanh;
    base.training.microbatches = overlap ? 3 : 1;
    base.training.distributed.overlap = overlap;
    for_strategies(base, [&](const Experiment& setup, const std::string& what) {
      SCOPED_TRACE(what);
      expect_no_bit_changes<float>(setup);
    });
  }
}

TEST(Recomputation, ChangesNoBitOfResidualsWithSplitRows) {
  Experiment base = primes(13);
  base.model.kind = ModelKind::residual_mlp;
  base.model.mlp.widths.clear();
  base.model.residual_mlp = {3, 11, 13, 3, 2};
  base.training.microbatches = 2;
  for (const bool rows : {false, true})
    for_strategies(base, [&](Experiment setup, const std::string& what) {
      const bool splits = setup.training.distributed.mesh_axis_names.back() == "model";
      if (rows && !splits) return;
      setup.training.distributed.sequence_parallel = rows;
      SCOPED_TRACE(what);
      expect_no_bit_changes<double>(setup);
    });
}

TEST(Recomputation, ChangesNoBitOfAPipeline) {
  const Size ranks = Communicator::world().size();
  if (ranks > 5) GTEST_SKIP() << "five layers";
  for (const PipelineSchedule schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble}) {
    Experiment setup = train_test::on_mesh(primes(13), {{"pipeline", ranks}}, "data");
    setup.model.mlp.activation = Activation::gelu;
    setup.training.microbatches = 3;
    setup.training.distributed.schedule = schedule;
    SCOPED_TRACE(name_of(schedule));
    expect_no_bit_changes<float>(setup);
  }
}

}  // namespace
}  // namespace tessera
