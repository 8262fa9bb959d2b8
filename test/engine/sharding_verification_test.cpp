// SPDX-License-Identifier: Apache-2.0
// What sharded runs measure of themselves: memory, allocations, checked collectives.
#include <array>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/allocation_tracker.hpp>

#include "engine/strategy_support.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::for_strategies;
using train_test::primes;
using train_test::trainer_of;

/// A line of the memory plan, and the beginnings of the labels of what it counts.
struct Line {
  Size MemoryPlan::*planned;
  std::vector<std::string> labels;
};
const std::array<Line, 8> lines{{
    {&MemoryPlan::parameters, {"tessera::parameters"}},
    {&MemoryPlan::gradients, {"tessera::gradients"}},
    {&MemoryPlan::moments, {"tessera::optimizer_moments"}},
    {&MemoryPlan::gathered_units, {"tessera::gathered_units"}},
    {&MemoryPlan::unit_gradients,
     {"tessera::unit_gradients", "tessera::incoming_gradients", "tessera::arriving_gradients"}},
    {&MemoryPlan::activations, {"tessera::activations"}},
    {&MemoryPlan::scratch, {"tessera::gemm_scratch"}},
    {&MemoryPlan::sums, {"tessera::sums", "tessera::checksum"}},
}};

/// What the trainer still holds after a run, line by line and by all labels together.
template <class T>
void expect_memory_as_planned(const Experiment& setup) {
  std::list<AllocationScope> scopes;
  for (const Line& line : lines)
    for (const std::string& label : line.labels) scopes.emplace_back(label);
  Trainer<T> trainer = trainer_of<T>(setup);
  const TrainingMetrics metrics = trainer.fit(setup.data);
  const MemoryPlan memory = trainer.plan(setup.data.samples).memory(trainer.mesh().rank());
  auto scope = scopes.begin();
  Size persistent = 0;
  for (const Line& line : lines) {
    Size measured = 0;
    for (std::size_t i = 0; i < line.labels.size(); ++i) measured += (scope++)->current_bytes();
    EXPECT_EQ(measured, memory.*line.planned) << line.labels.front();
    if (&line - lines.data() < 3) persistent += measured;
  }
  EXPECT_EQ(persistent, memory.persistent());
  EXPECT_EQ(metrics.measured_bytes, memory.total());
  EXPECT_EQ(plan_violation(metrics), "");
}

TEST(ShardingVerification, MemoryIsWhatThePlanSaysLineByLine) {
  for (const OptimizerConfig& optimizer :
       {OptimizerConfig{.kind = OptimizerKind::sgd},
        OptimizerConfig{.kind = OptimizerKind::sgd, .momentum = 0.5},
        OptimizerConfig{.kind = OptimizerKind::adam}}) {
    Experiment base = primes();
    base.model.mlp.activation = Activation::gelu;
    base.training.num_epochs = 1;
    base.training.optimizer = optimizer;
    base.training.microbatches = optimizer.momentum > 0 ? 3 : 1;
    base.training.clip.global_norm = 1;
    base.training.check_finite = true;
    base.training.check_replicas_every = 2;
    for_strategies(base, [&](Experiment setup, const std::string& what) {
      SCOPED_TRACE(testing::Message() << what << ", " << name_of(optimizer.kind));
      expect_memory_as_planned<double>(setup);
      setup.model.matmul_precision = MatmulPrecision::tf32;
      setup.training.distributed.overlap = true;
      setup = train_test::with_options_that_act(setup);
      expect_memory_as_planned<float>(setup);
    });
  }
}

TEST(ShardingVerification, MemoryOfASecondFitIsAsPlannedToo) {
  Experiment base = primes();
  base.training.check_replicas_every = 2;
  for_strategies(base, [&](const Experiment& setup, const std::string& what) {
    SCOPED_TRACE(what);
    Trainer<float> trainer = trainer_of<float>(setup);
    EXPECT_EQ(plan_violation(trainer.fit(setup.data)), "");
    EXPECT_EQ(plan_violation(trainer.fit(setup.data)), "");
    trainer.reset();
    EXPECT_EQ(plan_violation(trainer.fit(setup.data)), "");
  });
}

TEST(ShardingVerification, WarmStepAllocatesNothing) {
  for (const bool overlap : {false, true}) {
    Experiment base = primes();
    base.training.microbatches = overlap ? 3 : 1;
    base.training.distributed.overlap = overlap;
    base.training.clip = {.global_norm = 1, .value = 0.5};
    base.training.check_finite = true;
    base.training.check_replicas_every = 1;
    for_strategies(base, [&](Experiment setup, const std::string& what) {
      SCOPED_TRACE(testing::Message() << what << ", overlap " << overlap);
      train_test::expect_no_allocation_when_warm<float>(setup);
      if (setup.training.distributed.mesh_axis_names.back() == "model") {
        setup.training.distributed.sequence_parallel = true;
        train_test::expect_no_allocation_when_warm<double>(setup);
      }
    });
  }
}

TEST(ShardingVerification, CheckedCollectivesChangeNeitherNumbersNorTraffic) {
  Experiment base = primes();
  base.training.microbatches = 3;
  base.training.distributed.overlap = true;
  base.training.clip.global_norm = 0.1;
  base.training.check_finite = true;
  base.training.check_replicas_every = 2;
  for_strategies(base, [&](const Experiment& setup, const std::string& what) {
    SCOPED_TRACE(what);
    std::array<TrainingMetrics, 2> metrics;
    for (const bool check : {false, true}) {
      CommOptions comm;
      comm.check_collectives = check;
      Trainer<float> trainer(setup.model, setup.training, comm);
      metrics[check] = trainer.fit(setup.data);
      EXPECT_EQ(plan_violation(metrics[check]), "");
    }
    EXPECT_EQ(metrics[0].epoch_losses, metrics[1].epoch_losses);
    EXPECT_EQ(metrics[0].measured_traffic, metrics[1].measured_traffic);
  });
}

}  // namespace
}  // namespace tessera
