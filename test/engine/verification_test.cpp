// SPDX-License-Identifier: Apache-2.0
// What a run measures of itself: traffic, memory, allocations.
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <tessera/base/allocation_tracker.hpp>

#include "engine/training_support.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::primes;
using train_test::trainer_of;
using train_test::tutorial;

TEST(Verification, TrafficOfTheTutorialIsLiterally160GradientsAnd20LossSums) {
  Trainer<float> trainer = trainer_of<float>(tutorial());
  const TrainingMetrics metrics = trainer.fit(tutorial().data);
  std::vector<LedgerRow> expected;
  if (trainer.mesh().world().size() > 1)
    expected = {{"data", Operation::all_reduce, 160 + 20, 160 * 1540 + 20 * 8 * 8}};
  EXPECT_EQ(metrics.measured_traffic, expected);
  EXPECT_EQ(metrics.planned_traffic, expected);
}

TEST(Verification, MemoryIsWhatThePlanSaysForEveryOptimizerAndType) {
  for (OptimizerConfig optimizer : {OptimizerConfig{.kind = OptimizerKind::sgd},
                                    OptimizerConfig{.kind = OptimizerKind::sgd, .momentum = 0.5},
                                    OptimizerConfig{.kind = OptimizerKind::adam},
                                    OptimizerConfig{.kind = OptimizerKind::rmsprop}}) {
    for (MatmulPrecision precision : {MatmulPrecision::strict, MatmulPrecision::tf32}) {
      Experiment setup = primes();
      setup.model.mlp.activation = Activation::gelu;
      setup.model.matmul_precision = precision;
      setup.training.optimizer = optimizer;
      Trainer<float> trainer = trainer_of<float>(setup);
      const TrainingMetrics metrics = trainer.fit(setup.data);
      EXPECT_EQ(metrics.measured_bytes, metrics.planned_bytes);
      EXPECT_EQ(metrics.planned_bytes,
                trainer.plan(setup.data.samples).memory(trainer.mesh().rank()).total());
      EXPECT_GT(metrics.measured_bytes, 2 * trainer.model().num_parameters() * 4);
    }
    Experiment setup = primes();
    setup.training.optimizer = optimizer;
    const TrainingMetrics metrics = trainer_of<double>(setup).fit(setup.data);
    EXPECT_EQ(metrics.measured_bytes, metrics.planned_bytes);
  }
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
    EXPECT_EQ(violation, "");  // one rank calls nobody
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
  planned.planned_traffic = {{"data", Operation::all_reduce, 2, 80}};
  planned.measured_traffic = planned.planned_traffic;
  planned.planned_bytes = planned.measured_bytes = 800;
  EXPECT_EQ(plan_violation(planned), "");
  const auto violates = [&](auto change) {
    TrainingMetrics metrics = planned;
    change(metrics);
    return plan_violation(metrics) != "";
  };
  EXPECT_TRUE(violates([](TrainingMetrics& m) { m.measured_traffic[0].axis = "fsdp"; }));
  EXPECT_TRUE(violates(
      [](TrainingMetrics& m) { m.measured_traffic[0].operation = Operation::all_gather; }));
  EXPECT_TRUE(violates([](TrainingMetrics& m) { m.measured_traffic[0].payload_bytes -= 4; }));
  EXPECT_TRUE(violates([](TrainingMetrics& m) { m.measured_traffic.clear(); }));
  EXPECT_TRUE(violates([](TrainingMetrics& m) { m.measured_bytes += 8; }));
  EXPECT_TRUE(violates([](TrainingMetrics& m) { m.measured_bytes -= 8; }));
}

TEST(Verification, WarmStepAllocatesNothing) {
  for (Size microbatches : {1, 3}) {
    for (bool overlap : {false, true}) {
      Experiment setup = primes();
      setup.training.microbatches = microbatches;
      setup.training.distributed.overlap = overlap;
      setup.training.distributed.bucket_bytes = 300;
      setup.training.clip = {.global_norm = 1, .value = 0.5};
      train_test::expect_no_allocation_when_warm<float>(setup);
      train_test::expect_no_allocation_when_warm<double>(setup);
      setup.model.matmul_precision = MatmulPrecision::tf32;
      train_test::expect_no_allocation_when_warm<float>(setup);
    }
  }
}

/// Allocates in the middle of a step.
void allocate_in_loss(const char* region) {
  if (std::string_view(region) == "tessera::loss") const Vector<float> extra("extra", 1);
}

TEST(Verification, AllocationInAStepWouldBeSeen) {
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

TEST(Verification, CheckedCollectivesChangeNeitherNumbersNorTraffic) {
  Experiment setup = primes();
  setup.training.microbatches = 3;
  setup.training.distributed.overlap = true;
  setup.training.distributed.bucket_bytes = 300;
  TrainingMetrics metrics[2];
  for (bool check : {false, true}) {
    CommOptions comm;
    comm.check_collectives = check;
    Trainer<float> trainer(setup.model, setup.training, comm);
    EXPECT_EQ(trainer.mesh().world().options().check_collectives, check);
    metrics[check] = trainer.fit(setup.data);
  }
  EXPECT_EQ(metrics[0].epoch_losses, metrics[1].epoch_losses);
  EXPECT_EQ(metrics[0].measured_traffic, metrics[1].measured_traffic);
  EXPECT_EQ(plan_violation(metrics[1]), "");
}

}  // namespace
}  // namespace tessera
