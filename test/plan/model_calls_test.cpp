// SPDX-License-Identifier: Apache-2.0
// Calls of models other than the MLP along `model`, with bytes in float32.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tessera/nn/models/models.hpp>
#include <tessera/plan/replica_check.hpp>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::calls_of;

PlanInput vae_input(std::vector<Axis> axes) {
  PlanInput input = plan_test::tutorial(std::move(axes));
  input.model = vae({.input_width = 9, .hidden = {4, 6}, .latent = 2});
  input.loss = LossKind::bce;
  input.batch_size = input.samples = 6;
  return input;
}

TEST(ModelCalls, LossesAreTwoSumsOfEachMicrobatch) {
  PlanInput input = vae_input({{"data", 2}});
  input.samples = 18;  // three steps
  input.microbatches = 2;
  input.validation_samples = 7;  // two batches
  EXPECT_EQ(input.loss_terms(), 2);
  EXPECT_EQ(calls_of(input, {.epochs = 1}),
            "data all_reduce 1 x, " + std::to_string(3 * 2 * 2 * 8) + " B");
  EXPECT_EQ(calls_of(input, {.validations = 1}),
            "data all_reduce 1 x, " + std::to_string(2 * 2 * 2 * 8) + " B");
  const SumsPlan sums = plan_sums(input, make_plan(input).stages.front());
  EXPECT_EQ(sums.losses, 12);
  EXPECT_EQ(sums.validation, 8);
  input.model = mlp({.widths = {9, 4, 9}});
  EXPECT_EQ(input.loss_terms(), 1);
  EXPECT_EQ(calls_of(input, {.epochs = 1}),
            "data all_reduce 1 x, " + std::to_string(3 * 2 * 8) + " B");
}

PlanInput ignoring_input(std::vector<Axis> axes) {
  PlanInput input = plan_test::tutorial(std::move(axes));
  input.model = transformer({.vocabulary = 5, .context = 4, .width = 6, .heads = 2, .blocks = 1});
  input.model.ignore_index = -1;
  input.loss = LossKind::cross_entropy;
  input.validation_samples = 7;
  return input;
}

TEST(ModelCalls, TargetsThatCountAreOneSumOfAStepAndOfAValidation) {
  PlanInput input = ignoring_input({{"data", 2}, {"fsdp", 2}, {"model", 2}});
  input.microbatches = 1'000'000;
  input.batch_size = input.samples = 4'000'000;
  const Plan plan = make_plan(input);
  std::vector<CollectivePlan> counts;
  for (const CollectivePlan& row : plan.collectives(3))
    if (row.what == "counting targets") counts.push_back(row);
  EXPECT_EQ(
      counts,
      (std::vector<CollectivePlan>{
          {"data+fsdp", Operation::all_reduce, 1, 8, Cadence::step, "counting targets"},
          {"data+fsdp", Operation::all_reduce, 1, 8, Cadence::validation, "counting targets"}}));
  EXPECT_NE(plan.stages.front().actions.front().as<CountTargets>(), nullptr);
  EXPECT_LT(plan.stages.front().actions.size(), 500U);
  input.microbatches = 3;
  const std::string with = calls_of(input);
  input.model.ignore_index.reset();
  EXPECT_NE(calls_of(input), with);
  for (const CollectivePlan& row : make_plan(input).collectives(3))
    EXPECT_NE(row.what, "counting targets");
}

TEST(ModelCalls, OnlyTheLastStageCountsTargets) {
  const PlanInput input = ignoring_input({{"pipeline", 2}, {"data", 2}});
  const Plan plan = make_plan(input);
  const auto counts = [&](Size rank) {
    Size calls = 0;
    for (const CollectivePlan& row : plan.collectives(rank))
      if (row.what == "counting targets" && row.cadence == Cadence::step) calls += row.calls;
    return calls;
  };
  EXPECT_EQ(counts(0), 0);
  EXPECT_EQ(counts(3), 1);
}

PlanInput on_two_ranks(ModelSpec model, LossKind loss) {
  PlanInput input = plan_test::tutorial({{"model", 2}});
  input.model = std::move(model);
  input.loss = loss;
  input.batch_size = input.samples = 3;
  return input;
}

PlanInput experts_on_two_ranks() {
  return on_two_ranks(transformer({.vocabulary = 11,
                                   .context = 5,
                                   .width = 4,
                                   .heads = 2,
                                   .blocks = 1,
                                   .inner_width = 7,
                                   .experts = 6,
                                   .top_k = 2,
                                   .capacity_factor = 1}),
                      LossKind::cross_entropy);
}

TEST(ModelCalls, ExpertsMultiplyAllTheirSlots) {
  // ceil(2 * 5 / 6) = 2 slots of each of 6 experts for 3 samples; the router has 15 rows.
  const PlanInput input = experts_on_two_ranks();
  PlanInput dense = input;
  dense.model = transformer(
      {.vocabulary = 11, .context = 5, .width = 4, .heads = 2, .blocks = 1, .inner_width = 7});
  const double fc = 2 * 2 * 4 * 7, router = 2 * 15 * 4 * 6;
  EXPECT_EQ(make_plan(input).flops.forward - make_plan(dense).flops.forward,
            (3 * 2 * 6 - 15) * fc + router);
  for (const char* axis : {"expert", "data"}) {
    PlanInput split = input;
    split.mesh = MeshShape({{axis, 2}});
    EXPECT_EQ(make_plan(split).flops.total(), make_plan(input).flops.total()) << axis;
  }
}

TEST(ModelCalls, ExpertsAreCopiesOnAllOtherAxesThatRepeatParameters) {
  PlanInput input = experts_on_two_ranks();
  input.mesh = MeshShape({{"data", 2}, {"expert", 2}, {"context", 2}});
  input.strategy = Strategy::zero1;
  const auto checks = plan_replica_check(make_plan(input), 0);
  EXPECT_TRUE(std::any_of(checks.begin(), checks.end(), [&](const CheckCall& call) {
    return input.mesh.group_name(call.ranks) == "data+context";
  }));
}

// Messages of pieces take the place of a gather or a reduce-scatter of rows beside products.
TEST(ModelCalls, OverlapSendsTheBytesOfTheCollectivesThatItReplaces) {
  PlanInput input = on_two_ranks(transformer({.vocabulary = 12,
                                              .context = 8,
                                              .width = 8,
                                              .heads = 4,
                                              .blocks = 2,
                                              .inner_width = 12,
                                              .positions = Positions::rope,
                                              .kv_heads = 4,
                                              .qk_norm = true}),
                                 LossKind::cross_entropy);
  input.mesh = MeshShape({{"model", 4}});
  input.batch_size = input.samples = 4;
  input.sequence_parallel = true;
  const auto calls = [&](std::initializer_list<Operation> operations) {
    const Plan plan = make_plan(input);
    Ledger::Count sum;
    for (const LedgerRow& row : planned_traffic({{.plan = &plan, .steps = 1}}, 1))
      if (std::count(operations.begin(), operations.end(), row.operation) > 0)
        sum.calls += row.calls, sum.payload_bytes += row.payload_bytes;
    return sum;
  };
  const auto whole = calls({Operation::all_gather, Operation::reduce_scatter});
  EXPECT_EQ(calls({Operation::receive}).calls, 0);
  input.model_overlap = true;
  const auto left = calls({Operation::all_gather, Operation::reduce_scatter});
  const auto received = calls({Operation::receive});
  // Backward, q and kv of a block gather their input once, in one ring.
  const auto shared = whole.calls - left.calls - received.calls / 3;
  EXPECT_EQ(shared, 2);
  const auto bytes = whole.payload_bytes - left.payload_bytes - shared * (4 * 8 * 8 * 4);
  EXPECT_EQ(received.payload_bytes, bytes * 3 / 4);
  EXPECT_EQ(calls({Operation::send}).payload_bytes, received.payload_bytes);
  EXPECT_EQ(left.calls, 3) << "the embedding's sum, its gradient, and the terms of the loss";
}

// The engine takes the steps of the plan of a whole batch for the last one, too.
TEST(ModelCalls, SmallerBatchesTakeTheSameSteps) {
  for (const auto& axes :
       {std::vector<Axis>{{"expert", 2}, {"context", 2}}, {{"context", 2}, {"expert", 2}}}) {
    PlanInput input = experts_on_two_ranks();
    input.mesh = MeshShape(axes);
    std::vector<std::string> steps;
    for (const Size batch : {5, 4, 3, 2, 1}) {
      input.batch_size = batch;
      const Plan plan = make_plan(input);
      std::string names;
      for (const ListedAction& listed : plan.stages.front().actions)
        if (const auto* move = listed.as<Move>())
          names += fmt::format("{}:{} ", move->axis,
                               static_cast<int>(move->operation.value_or(Operation::agree)));
      steps.push_back(names);
    }
    for (const std::string& names : steps) EXPECT_EQ(names, steps.front());
  }
}

TEST(ModelCalls, ReportsHaveThreeNumbersOfEachExpertAndTheTermsOfTheLoss) {
  PlanInput input = experts_on_two_ranks();
  EXPECT_EQ(input.loss_terms(), 3);  // with the balance loss and the z-loss
  EXPECT_EQ(calls_of(input, {.reports = 1}),
            "model all_reduce 1 x, " + std::to_string((3 + 2 + 3 * 6) * 8) + " B");
  EXPECT_EQ(plan_sums(input, make_plan(input).stages.front()).routing, 3 * 6);
}

}  // namespace
}  // namespace tessera
