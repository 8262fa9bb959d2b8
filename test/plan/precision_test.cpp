// SPDX-License-Identifier: Apache-2.0
// Mixed precision reduces the bytes of gathers, messages and activations, but not those of sums.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::sharded;
using plan_test::tutorial;

PlanInput in_bfloat16(PlanInput input) {
  input.compute_type = DType::bfloat16;
  return input;
}

/// Returns payload bytes by purpose and operation.
std::map<std::string, Size> bytes_of(const PlanInput& input) {
  std::map<std::string, Size> bytes;
  for (const CollectivePlan& row : make_plan(input).collectives(0))
    bytes[row.what + " " + std::string(name_of(row.operation))] += row.payload_bytes;
  return bytes;
}

/// Expects half of the bytes for the calls in `halved` and equal bytes for all others.
void expect_halved(const PlanInput& input, const std::vector<std::string>& halved) {
  const std::map<std::string, Size> wide = bytes_of(input), narrow = bytes_of(in_bfloat16(input));
  std::vector<std::string> found;
  for (const auto& [what, bytes] : wide) {
    if (narrow.at(what) == bytes) continue;
    found.push_back(what);
    EXPECT_EQ(2 * narrow.at(what), bytes) << what;
  }
  EXPECT_EQ(found, halved);
  EXPECT_EQ(wide.size(), narrow.size());
}

TEST(PlanPrecision, GathersMoveHalfTheBytesAndReductionsAsMany) {
  expect_halved(tutorial({{"data", 4}}), {});
  for (const Strategy strategy : {Strategy::zero1, Strategy::zero2, Strategy::fsdp})
    expect_halved(sharded(tutorial({{"fsdp", 4}}), strategy), {"parameters all_gather"});
}

TEST(PlanPrecision, StagesSendHalfTheBytes) {
  PlanInput input = tutorial({{"pipeline", 2}});
  input.microbatches = 2;
  expect_halved(input, {"activation gradients receive", "activations send"});
}

// The product of the second layer is a sum over `model`. The gradient of the first layer's input is
// not computed.
TEST(PlanPrecision, SumsOverModelStayWide) {
  PlanInput input = tutorial({{"model", 2}});
  expect_halved(input, {});
  const Plan plan = make_plan(in_bfloat16(input));
  for (const Slot& slot : plan.stages[0].slots) {
    if (!slot.in_frame()) continue;
    const bool is_sum = placement_along("model", slot.placements, input.mesh).is_partial() ||
                        slot.path.ends_with(".sum");
    EXPECT_EQ(slot.type == DType::float32, is_sum) << slot.path;
  }
  // Split rows are gathered in half precision.
  input.model = mlp({.widths = {4, 8, 8, 8, 2}});
  input.sequence_parallel = true;
  expect_halved(input, {"activation gradients all_gather", "activations all_gather"});
}

TEST(PlanPrecision, SumsOverModelMayBeNarrow) {
  PlanInput input = tutorial({{"model", 2}});
  input.model = mlp({.widths = {4, 8, 8, 8, 2}});
  const Size wide = make_plan(in_bfloat16(input)).memory(0).activations;
  input.model_reduce_dtype = ModelReduceType::compute;
  expect_halved(input, {"activation gradients all_reduce", "activations all_reduce"});
  const Plan plan = make_plan(in_bfloat16(input));
  for (const Slot& slot : plan.stages[0].slots)
    EXPECT_EQ(slot.in_frame() && slot.type == DType::float32, false) << slot.path;
  EXPECT_LT(plan.memory(0).activations, wide);
  input.sequence_parallel = true;
  expect_halved(input,
                {"activation gradients all_gather", "activation gradients reduce_scatter",
                 "activations all_gather", "activations all_reduce", "activations reduce_scatter"});
}

TEST(PlanPrecision, StateKeepsItsMemory) {
  for (const Strategy strategy : {Strategy::data, Strategy::fsdp}) {
    const PlanInput input = sharded(tutorial({{"fsdp", 4}}), strategy);
    const Plan plan = make_plan(in_bfloat16(input));
    const MemoryPlan wide = make_plan(input).memory(0), narrow = plan.memory(0);
    EXPECT_EQ(narrow.parameters, wide.parameters);
    EXPECT_EQ(narrow.gradients, wide.gradients);
    EXPECT_EQ(narrow.moments, wide.moments);
    EXPECT_EQ(narrow.unit_gradients, wide.unit_gradients);
    EXPECT_EQ(narrow.data, wide.data);
    EXPECT_EQ(2 * narrow.gathered_units, wide.gathered_units);
    EXPECT_EQ(narrow.copies, allocated_bytes(plan.state(0).parameters(), 2));
    EXPECT_EQ(wide.copies, 0);
  }
}

// With sharded moments, a rank keeps only the parameters that it updates, and copies of all
// parameters.
TEST(PlanPrecision, ZeroShardsTheParametersOfTheOptimizer) {
  const Plan plan = make_plan(in_bfloat16(sharded(tutorial({{"data", 4}}), Strategy::zero1)));
  const MemoryPlan memory = plan.memory(0);
  EXPECT_EQ(memory.parameters, allocated_bytes(plan.state(0).moments(), 4));
  EXPECT_EQ(memory.copies, allocated_bytes(plan.input.model.num_parameters(), 2));
}

TEST(PlanPrecision, EmulationTakesMemoryForTheLargestOperands) {
  PlanInput input = in_bfloat16(tutorial({{"data", 4}}));
  EXPECT_EQ(make_plan(input).memory(0).scratch, 0);
  input.traits.bfloat16 = input.traits.float16 = false;
  // Eight rows. Largest operands and results: (8, 64) each.
  EXPECT_EQ(make_plan(input).memory(0).scratch, 4 * (8 * 64 + 8 * 64 + 8 * 64));
}

TEST(PlanPrecision, OnlyFloat16LooksForInfinities) {
  PlanInput input = tutorial();
  const auto looks = [&] {
    const Plan plan = make_plan(input);
    for (const ListedAction& listed : plan.stages[0].actions)
      if (listed.as<CheckFinite>() != nullptr) return true;
    return false;
  };
  EXPECT_FALSE(looks());
  input.compute_type = DType::bfloat16;
  EXPECT_FALSE(looks());
  input.compute_type = DType::float16;
  EXPECT_TRUE(looks());
}

}  // namespace
}  // namespace tessera
