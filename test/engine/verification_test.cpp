// SPDX-License-Identifier: Apache-2.0
// Measured traffic, memory and allocations equal the plan's.
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

TEST(Verification, SecondFitsAreAsPlanned) {
  Experiment base = primes();
  base.training.check_replicas_every = 2;
  Trainer<float> trainer = trainer_of<float>(base);
  for (const bool again : {false, false, true}) {
    if (again) trainer.reset();
    EXPECT_EQ(plan_violation(trainer.fit(base.data)), "");
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
