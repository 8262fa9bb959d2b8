// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::tutorial;

// 32 rows on 3 ranks are 11, 11 and 10; of 8 batches 88, 88 and 80.
TEST(PlanMemory, TutorialOnThreeRanks) {
  const Plan plan = make_plan(tutorial({{"data", 3}}));
  const MemoryPlan largest = plan.memory(0);
  EXPECT_EQ(largest.parameters, 1544);  // 385 floats, rounded up to 8 bytes
  EXPECT_EQ(largest.gradients, 1544);
  EXPECT_EQ(largest.moments, 3080);
  EXPECT_EQ(largest.activations, 5720);  // 11 (64 + 1) outputs and as many gradients
  EXPECT_EQ(largest.scratch, 0);
  EXPECT_EQ(largest.sums, 64);    // 8 losses
  EXPECT_EQ(largest.data, 1760);  // 88 (4 + 1) floats
  EXPECT_EQ(largest.persistent(), 6168);
  EXPECT_EQ(largest.total(), 13712);
  EXPECT_EQ(plan.memory(1).total(), 13712);

  const MemoryPlan smallest = plan.memory(2);
  EXPECT_EQ(smallest.persistent(), 6168);
  EXPECT_EQ(smallest.activations, 5200);
  EXPECT_EQ(smallest.data, 1600);
  EXPECT_EQ(smallest.total(), 13032);
}

TEST(PlanMemory, Float64TakesTwiceTheBytes) {
  PlanInput input = tutorial({{"data", 3}});
  input.dtype = DType::float64;
  const MemoryPlan memory = make_plan(input).memory(0);
  EXPECT_EQ(memory.parameters, 3080);
  EXPECT_EQ(memory.moments, 6160);
  EXPECT_EQ(memory.activations, 11440);
  EXPECT_EQ(memory.sums, 64);
  EXPECT_EQ(memory.data, 3520);
}

TEST(PlanMemory, MomentsAreTheOptimizers) {
  PlanInput input = tutorial();
  input.moments = 0;
  EXPECT_EQ(make_plan(input).memory(0).moments, 0);
  input.moments = 1;
  EXPECT_EQ(make_plan(input).memory(0).moments, 1544);
}

TEST(PlanMemory, MicrobatchesShrinkActivations) {
  PlanInput input = tutorial({{"data", 3}});
  input.microbatches = 4;  // of 11 rows: 3, 3, 3, 2
  const MemoryPlan memory = make_plan(input).memory(0);
  EXPECT_EQ(memory.activations, 3 * (64 + 1) * 2 * 4);
  EXPECT_EQ(memory.sums, 8 * 4 * 8);
}

// Layer 1 rounds x (11, 4) or its transpose on the left, and the kernel (4, 64) or dZ (11, 64) on
// the right; layer 2 has one output and is no matrix-matrix product.
TEST(PlanMemory, Tf32RoundsOperandsOfMatrixProductsOnly) {
  PlanInput input = tutorial({{"data", 3}});
  input.precision = MatmulPrecision::tf32;
  EXPECT_EQ(make_plan(input).memory(0).scratch, (11 * 4 + 11 * 64) * 4);
  input.global_batch = 3;  // one row on each rank
  input.samples = 3;
  EXPECT_EQ(make_plan(input).memory(0).scratch, 0);
}

TEST(PlanMemory, GeluKeepsItsPreactivations) {
  PlanInput input = tutorial({{"data", 3}});
  input.model = mlp({.widths = {4, 64, 1}, .activation = Activation::gelu});
  EXPECT_EQ(make_plan(input).memory(0).activations, 5720 + 11 * 64 * 4);
}

TEST(PlanMemory, GradientsOfActivationsShareTwoBuffers) {
  // Outputs 5, 2, 7 wide; the gradients of the first and the last share one buffer.
  PlanInput input = tutorial();
  input.model = plan_test::three_layers();
  const ActivationElements elements =
      activation_elements(Layouts(input), input.model, input.model, {.microbatch = 10});
  EXPECT_EQ(elements.outputs, 140);
  EXPECT_EQ(elements.gradients[0], 70);
  EXPECT_EQ(elements.gradients[1], 20);
  EXPECT_EQ(elements.total(), 230);
}

TEST(PlanMemory, RankWithoutRowsKeepsTheState) {
  PlanInput input = tutorial({{"data", 8}});
  input.global_batch = 3;
  input.samples = 6;
  const Plan plan = make_plan(input);
  EXPECT_EQ(plan.memory(2).data, 2 * (4 + 1) * 4);
  EXPECT_EQ(plan.memory(3).data, 0);
  EXPECT_EQ(plan.memory(3).activations, 0);
  EXPECT_EQ(plan.memory(3).persistent(), 6168);
}

}  // namespace
}  // namespace tessera
