// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "results/result_parts.hpp"

namespace tessera::bench {
namespace {

/// The plan of the tutorial's network with a strategy on its usual mesh of 4 ranks.
Plan tutorial(const std::string& strategy) {
  Study study;
  study.base.model.mlp.widths = {4, 64, 1};
  study.base.training.batch_size = 32;
  study.grids = {{{"strategy", {strategy}}, {"ranks", {4}}}};
  return plan_of(make_cases(study).at(0).config, 4);
}

TEST(Explanation, NamesTheLargestDifferenceFirst) {
  const Plan plan = tutorial("data");
  const SimulatedStep step = simulate(plan, [](const Work&) { return Cost{1e-6}; });
  Breakdown measured;
  measured.products.mean_rank_seconds = step.products.total();
  measured.compute.mean_rank_seconds = step.products.total() + step.kernels.total() + 1e-6;
  measured.optimizer.mean_rank_seconds = step.update.total();
  measured.calls = {{"data", Operation::all_reduce, 1, step.communication() + 5e-6, 0}};
  const std::vector<ExplanationLine> parts = explain(step, measured, plan);
  EXPECT_EQ(parts[0].part, "all_reduce on data");
  EXPECT_EQ(parts[0].payload_bytes, 1540);
  EXPECT_EQ(parts[0].calls, 1);
  EXPECT_EQ(parts[1].part, "kernels");
}

TEST(ResultParts, PartsOfMemoryAddUpToTheTotal) {
  for (const char* strategy : {"data", "zero1", "zero2", "fsdp", "hybrid", "tensor"}) {
    CaseResult result;
    EXPECT_TRUE(add_plan(result, tutorial(strategy), Limits()));
    Size sum = 0;
    for (const auto& [name, bytes] : result.memory->parts) sum += bytes;
    EXPECT_EQ(sum, result.memory->planned_bytes) << strategy;
  }
}

}  // namespace
}  // namespace tessera::bench
