// SPDX-License-Identifier: Apache-2.0
// Steady memory of each strategy, float32 with Adam, as in the table of src/tessera/plan/README.md.
#include <functional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::sharded;
using plan_test::tutorial;

constexpr Size P = 32 + 128 + 128;

/// Units of 32, 128 and 128 elements, which 2, 4 and 8 ranks and 64 bytes divide evenly.
MemoryPlan memory(Strategy strategy, std::vector<Axis> axes,
                  const std::function<void(PlanInput&)>& change = {}) {
  PlanInput input = sharded(tutorial(std::move(axes)), strategy);
  input.model = mlp({.widths = {4, 8, 16, 8}, .bias = false});
  if (change) change(input);
  const Plan plan = make_plan(input);
  const MemoryPlan first = plan.memory(0);
  for (Size rank = 1; rank < input.mesh.num_ranks(); ++rank)
    EXPECT_EQ(plan.memory(rank).persistent(), first.persistent());
  return first;
}

TEST(ShardedMemory, PersistentBytesAreThoseOfTheTable) {
  for (const Size d : {2, 4, 8}) {
    EXPECT_EQ(memory(Strategy::data, {{"data", d}}).persistent(), 16 * P);
    EXPECT_EQ(memory(Strategy::zero1, {{"data", d}}).persistent(), 8 * P + 8 * P / d);
    EXPECT_EQ(memory(Strategy::zero2, {{"data", d}}).persistent(), 4 * P + 12 * P / d);
    EXPECT_EQ(memory(Strategy::fsdp, {{"fsdp", d}}).persistent(), 16 * P / d);
    EXPECT_EQ(memory(Strategy::hybrid, {{"data", 3}, {"fsdp", d}}).persistent(), 16 * P / d);
    EXPECT_EQ(memory(Strategy::tensor, {{"model", d}}).persistent(), 16 * P / d);
    EXPECT_EQ(memory(Strategy::fsdp, {{"fsdp", d}, {"model", 2}}).persistent(), 16 * P / (2 * d));
  }
  EXPECT_EQ(memory(Strategy::zero2, {{"data", 2}, {"fsdp", 4}}).persistent(), 4 * P + 12 * P / 8);
  EXPECT_EQ(memory(Strategy::fsdp, {{"data", 2}, {"fsdp", 4}}).persistent(), 16 * P / 8);
  EXPECT_EQ(memory(Strategy::hybrid, {{"data", 4}, {"fsdp", 1}}).persistent(), 16 * P);
}

TEST(ShardedMemory, OneGatheredUnitAndOneOnItsWay) {
  const auto gathered = [](const std::function<void(PlanInput&)>& change) {
    return memory(Strategy::fsdp, {{"fsdp", 4}}, change).gathered_units;
  };
  EXPECT_EQ(gathered({}), 4 * (128 + 128));
  EXPECT_EQ(gathered([](PlanInput& i) { i.prefetch = false; }), 4 * 128);
  EXPECT_EQ(gathered([](PlanInput& i) { i.reshard_after_forward = false; }), 4 * P);
  for (const Strategy strategy : {Strategy::data, Strategy::zero1, Strategy::zero2})
    EXPECT_EQ(memory(strategy, {{"data", 4}}).gathered_units, 0);
}

TEST(ShardedMemory, OneGradientOfAWholeUnitAndOneOnItsWay) {
  for (const Strategy strategy : {Strategy::zero2, Strategy::fsdp}) {
    const auto bytes = [&](bool overlap, Size microbatches) {
      return memory(strategy, {{"data", 4}},
                    [&](PlanInput& i) {
                      i.bucket_bytes = 1;
                      i.overlap = overlap;
                      i.microbatches = microbatches;
                    })
          .unit_gradients;
    };
    EXPECT_EQ(bytes(false, 1), 4 * 128);
    EXPECT_EQ(bytes(true, 1), 4 * (128 + 128));
    EXPECT_EQ(bytes(false, 3), 4 * 128 + 4 * 128 / 4) << "plus a share that is added";
  }
  EXPECT_EQ(memory(Strategy::zero1, {{"data", 4}}).unit_gradients, 0);
}

TEST(ShardedMemory, LiveUnitsAreRoundedUpTo64BytesEach) {
  PlanInput input = sharded(tutorial({{"fsdp", 4}}), Strategy::fsdp);
  input.model = mlp({.widths = {3, 11, 13, 7, 5, 2}});  // 44, 156, 98, 40 and 12 parameters
  const Size bytes = make_plan(input).memory(0).gathered_units;
  EXPECT_EQ(bytes, 4 * (160 + 112));
  EXPECT_LT(bytes - 4 * (156 + 98), 2 * 64);
}

}  // namespace
}  // namespace tessera
