// SPDX-License-Identifier: Apache-2.0
// Measured traffic, memory and allocations equal the plan's.
#include <array>
#include <list>
#include <optional>
#include <string>
#include <string_view>
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
using train_test::tutorial;

TEST(Verification, TutorialSends160GradientsAnd20LossSums) {
  Trainer<float> trainer = trainer_of<float>(tutorial());
  const TrainingMetrics metrics = trainer.fit(tutorial().data);
  std::vector<LedgerRow> expected;
  if (trainer.mesh().world().size() > 1)
    expected = {{"data", Operation::all_reduce, 160 + 20, 160 * 1540 + 20 * 8 * 8}};
  EXPECT_EQ(metrics.measured.traffic, expected);
  EXPECT_EQ(metrics.planned.traffic, expected);
}

/// A line of the memory plan and the prefixes of the labels that it counts.
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
     {"tessera::unit_gradients", "tessera::incoming_gradients", "tessera::reduce_scatter_scratch"}},
    {&MemoryPlan::activations, {"tessera::activations"}},
    {&MemoryPlan::scratch, {"tessera::gemm_scratch"}},
    {&MemoryPlan::sums, {"tessera::sums", "tessera::checksum"}},
}};

/// Expects that the memory of a trainer after a run is as planned, line by line and in total.
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
  EXPECT_EQ(metrics.measured.device_bytes, memory.total());
  EXPECT_EQ(plan_violation(metrics), "");
}

TEST(Verification, EveryLineOfMemoryIsAsPlanned) {
  for (const OptimizerConfig& optimizer :
       {OptimizerConfig{.kind = OptimizerKind::sgd},
        OptimizerConfig{.kind = OptimizerKind::sgd, .momentum = 0.5},
        OptimizerConfig{.kind = OptimizerKind::rmsprop},
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

TEST(Verification, MemoryOfASecondFitIsAsPlanned) {
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

TEST(Verification, WarmStepAllocatesNothing) {
  for (const bool overlap : {false, true}) {
    Experiment base = primes();
    base.training.microbatches = overlap ? 3 : 1;
    base.training.distributed.overlap = overlap;
    base.training.clip = {.global_norm = 1, .value = 0.5};
    base.training.check_finite = true;
    base.training.check_replicas_every = 1;
    base.training.activation_checkpointing.units = overlap ? 2 : 0;
    for_strategies(base, [&](Experiment setup, const std::string& what) {
      SCOPED_TRACE(testing::Message() << what << ", overlap " << overlap);
      setup.training.distributed.sequence_parallel =
          overlap && setup.training.distributed.mesh_axis_names.back() == "model";
      train_test::expect_no_allocation_when_warm<double>(setup);
      setup.model.matmul_precision = MatmulPrecision::tf32;
      train_test::expect_no_allocation_when_warm<float>(setup);
    });
  }
}

TEST(Verification, CheckedCollectivesChangeNeitherNumbersNorTraffic) {
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
    EXPECT_EQ(metrics[0].measured.traffic, metrics[1].measured.traffic);
  });
}

TEST(Verification, OneMoreCallIsAViolation) {
  Experiment setup = primes();
  setup.training.num_epochs = 3;
  Trainer<float> trainer = trainer_of<float>(setup);
  const Vector<float> extra("extra", 1);
  const TrainingMetrics metrics = trainer.fit(setup.data, [&](Size epoch, double) {
    if (epoch == 2) trainer.mesh().axis("data").all_reduce(extra);
  });
  const std::string violation = plan_violation(metrics);
  if (trainer.mesh().world().size() == 1) {
    EXPECT_EQ(violation, "");  // one rank makes no call
    return;
  }
  const Size calls = 9 + 3;
  EXPECT_NE(violation.find("data all_reduce: " + std::to_string(calls + 1) + " calls"),
            std::string::npos)
      << violation;
  EXPECT_NE(violation.find("data all_reduce: " + std::to_string(calls) + " calls"),
            std::string::npos)
      << violation;
}

TEST(Verification, OtherAxesOperationsBytesAndMemoryAreViolations) {
  TrainingMetrics planned;
  planned.planned.traffic = {{"data", Operation::all_reduce, 2, 80}};
  planned.measured.traffic = planned.planned.traffic;
  planned.planned.device_bytes = planned.measured.device_bytes = 800;
  EXPECT_EQ(plan_violation(planned), "");
  const auto violates = [&](auto change) {
    TrainingMetrics metrics = planned;
    change(metrics);
    return plan_violation(metrics) != "";
  };
  EXPECT_TRUE(violates([](TrainingMetrics& m) { m.measured.traffic[0].axis = "fsdp"; }));
  EXPECT_TRUE(violates(
      [](TrainingMetrics& m) { m.measured.traffic[0].operation = Operation::all_gather; }));
  EXPECT_TRUE(violates([](TrainingMetrics& m) { m.measured.traffic[0].payload_bytes -= 4; }));
  EXPECT_TRUE(violates([](TrainingMetrics& m) { m.measured.traffic.clear(); }));
  EXPECT_TRUE(violates([](TrainingMetrics& m) { m.measured.device_bytes += 8; }));
  EXPECT_TRUE(violates([](TrainingMetrics& m) { m.measured.device_bytes -= 8; }));
}

/// Allocates in the middle of a step.
void allocate_in_loss(const char* region) {
  if (std::string_view(region) == "tessera::loss") const Vector<float> extra("extra", 1);
}

TEST(Verification, AllocationInAStepIsCounted) {
  namespace tools = Kokkos::Tools::Experimental;
  Experiment setup = primes();
  setup.training.num_epochs = 4;
  Trainer<float> trainer = trainer_of<float>(setup);
  std::optional<AllocationScope> scope;
  Size last = 0;
  const tools::EventSet before = tools::get_callbacks();
  trainer.fit(setup.data, [&](Size epoch, double) {
    if (epoch == 1) {
      scope.emplace();
      tools::set_push_region_callback(allocate_in_loss);
    }
    if (epoch == 4) last = scope->allocations();
  });
  tools::set_push_region_callback(before.push_region);
  EXPECT_EQ(last, 3 * 3) << "one in each of three steps of three epochs";
}

}  // namespace
}  // namespace tessera
