// SPDX-License-Identifier: Apache-2.0
// Calls of models other than the MLP along `model`, with bytes in float32.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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

TEST(ModelCalls, VaeReducesHiddenLayersAndGathersLogits) {
  // A rank has 3 samples and 20 + 18 + 14 + 14 + 9 + 16 + 25 parameters. All-reduces sum the
  // outputs of encoder2 (6 columns) and decoder2 (4), and the gradients of the inputs of decoder3
  // (4) and decoder1 (2). Logits (9 columns) are gathered, heads are replicated.
  const std::string model = std::to_string(3 * (6 + 4 + 4 + 2) * 4),
                    logits = std::to_string(3 * 9 * 4), gradients = std::to_string(116 * 4);
  EXPECT_EQ(calls_of(vae_input({{"data", 2}, {"model", 2}}), {.steps = 1}),
            "data all_reduce 1 x, " + gradients + " B; model all_reduce 4 x, " + model +
                " B; model all_gather 1 x, " + logits + " B");
}

/// The encoder is column-parallel in every layer, with gathers in between.
TEST(ModelCalls, SpecsMakeEveryLayerOfTheEncoderColumnParallel) {
  PlanInput input = vae_input({{"model", 2}});
  for (const char* kernel : {"encoder1/kernel", "encoder2/kernel"})
    input.parameter_specs[kernel] = PartitionSpec::parse("P(None, 'model')");
  const Plan plan = make_plan(input);
  for (const ParameterPlan& parameter : plan.stages.front().parameters.parameters)
    if (parameter.path == "encoder1/kernel" || parameter.path == "encoder2/kernel") {
      EXPECT_EQ(parameter.along_model, Placement::shard(1)) << parameter.path;
    }
  // 6 samples. Gathered: encoder1 (4 columns; again for the gradient of encoder2's kernel),
  // encoder2 (6) and the logits (9). The gradient of encoder1's output (4) is scattered.
  EXPECT_EQ(calls_of(input, {.steps = 1}),
            "model all_reduce 3 x, " + std::to_string(6 * (4 + 4 + 2) * 4) +
                " B; model reduce_scatter 1 x, " + std::to_string(6 * 4 * 4) +
                " B; model all_gather 4 x, " + std::to_string(6 * (4 + 4 + 6 + 9) * 4) + " B");
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

/// One term is on the stage of logvar, the other one on the stage of the logits.
TEST(ModelCalls, StagesAddUpTheirTermsOfTheLoss) {
  const PlanInput input = vae_input({{"pipeline", 2}});
  const std::string text = calls_of(input, {.epochs = 1});
  EXPECT_EQ(text, "pipeline all_reduce 1 x, 16 B");
  const Plan plan = make_plan(input);
  const auto has = [&](std::size_t stage, const std::string& text) {
    for (const ListedAction& listed : plan.stages[stage].actions)
      if (to_string(listed, plan, plan.stages[stage]) == text) return true;
    return false;
  };
  EXPECT_TRUE(has(0, "forward(latent/output)"));
  EXPECT_FALSE(has(1, "forward(latent/output)"));
  EXPECT_TRUE(has(1, "loss"));
}

PlanInput on_two_ranks(ModelSpec model, LossKind loss) {
  PlanInput input = plan_test::tutorial({{"model", 2}});
  input.model = std::move(model);
  input.loss = loss;
  input.batch_size = input.samples = 3;
  return input;
}

TEST(ModelCalls, TransformerExchangesThreeNumbersOfALogit) {
  // 15 rows. Forward: embedding, proj and fc2 all-reduce (rows, 4); the terms of the loss (rows, 6)
  // are gathered. Backward: qkv, fc1 and logits all-reduce the gradients of their inputs.
  EXPECT_EQ(calls_of(on_two_ranks(transformer({.vocabulary = 11,
                                               .context = 5,
                                               .width = 4,
                                               .heads = 2,
                                               .blocks = 1,
                                               .inner_width = 6},
                                              {.activation = Activation::gelu}),
                                  LossKind::cross_entropy)),
            "model all_reduce 6 x, " + std::to_string(6 * 15 * 4 * 4) +
                " B; model all_gather 1 x, " + std::to_string(15 * 6 * 4) + " B");
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

TEST(ModelCalls, ExpertsAlongModelAddUpTheirTermsOfRowsAndGates) {
  // 15 rows. As in a dense block, with combine in place of fc2 and dispatch in place of fc1; and
  // the gradients of the gates (rows, 6).
  EXPECT_EQ(calls_of(experts_on_two_ranks()),
            "model all_reduce 7 x, " + std::to_string((6 * 15 * 4 + 15 * 6) * 4) +
                " B; model all_gather 1 x, " + std::to_string(15 * 6 * 4) + " B");
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

TEST(ModelCalls, ExpertsOnTheirRanksExchangeSlotsAndReduceNothing) {
  // Rank 0 has 2 of 3 samples, and 3 of 6 experts with 2 slots of 4 columns for each sample. It
  // sends the slots of its samples and those of its experts, forward and backward.
  PlanInput input = experts_on_two_ranks();
  input.mesh = MeshShape({{"expert", 2}});
  const Size exchanged = 2 * (2 * 6 + 3 * 3) * 2 * 4;
  // One bucket before the experts, and one behind them.
  const Size dense = input.model.num_parameters() - 6 * (4 * 7 + 7 + 7 * 4 + 4);
  EXPECT_EQ(calls_of(input), "expert all_reduce 2 x, " + std::to_string(dense * 4) +
                                 " B; expert all_to_all 4 x, " + std::to_string(exchanged * 4) +
                                 " B");
  input.strategy = Strategy::fsdp;
  EXPECT_EQ(calls_of(input).substr(calls_of(input).find("expert all_to_all")),
            "expert all_to_all 4 x, " + std::to_string(exchanged * 4) + " B");
}

TEST(ModelCalls, ExpertsAreCopiesOnAllOtherAxesThatRepeatParameters) {
  PlanInput input = experts_on_two_ranks();
  input.mesh = MeshShape({{"data", 2}, {"expert", 2}, {"context", 2}});
  EXPECT_EQ(axes_of(RankSet::expert_batch, input), (std::vector<std::string>{"data", "context"}));
  input.strategy = Strategy::zero1;
  const auto checks = plan_replica_check(make_plan(input), 0);
  EXPECT_TRUE(std::any_of(checks.begin(), checks.end(), [](const CheckCall& call) {
    return call.ranks == RankSet::expert_batch;
  }));
}

TEST(ModelCalls, ExpertsOnTheirRanksAreReducedOverTheOtherAxes) {
  PlanInput input = experts_on_two_ranks();
  input.mesh = MeshShape({{"data", 2}, {"expert", 2}});
  const Plan plan = make_plan(input);
  const Size of_rank = 3 * (4 * 7 + 7 + 7 * 4 + 4);
  for (const CollectivePlan& row : plan.collectives(3))
    if (row.axis == "data" && row.what == "gradients") {
      EXPECT_EQ(row.payload_bytes, of_rank * 4);
      return;
    }
  ADD_FAILURE() << "no gradients are reduced over data";
}

TEST(ModelCalls, ReportsHaveThreeNumbersOfEachExpertAndTheTermsOfTheLoss) {
  PlanInput input = experts_on_two_ranks();
  EXPECT_EQ(input.loss_terms(), 3);  // with the balance loss and the z-loss
  EXPECT_EQ(calls_of(input, {.reports = 1}),
            "model all_reduce 1 x, " + std::to_string((3 + 2 + 3 * 6) * 8) + " B");
  EXPECT_EQ(plan_sums(input, make_plan(input).stages.front()).routing, 3 * 6);
}

TEST(ModelCalls, PinnReducesTheSecondLayerOfEachPair) {
  // 18 rows. Forward: layer2 (rows, 4) and layer4 (rows, 1). Backward: layer3's input (rows, 4).
  EXPECT_EQ(calls_of(on_two_ranks(pinn({.width = 4, .layers = 3}, {.activation = Activation::tanh}),
                                  LossKind::poisson)),
            "model all_reduce 3 x, " + std::to_string((4 + 1 + 4) * 18 * 4) + " B");
}

TEST(ModelCalls, FnoReducesFieldsAndGathersNoModes) {
  // 75 rows. Forward: two Fourier layers (rows, 2) and the output (rows, 1). Backward: the inputs
  // of the projection and of both Fourier layers (rows, 2).
  EXPECT_EQ(
      calls_of(on_two_ranks(fno({.grid = 5, .modes = 2, .width = 2, .layers = 2, .projection = 3},
                                {.activation = Activation::gelu}),
                            LossKind::relative_l2)),
      "model all_reduce 6 x, " + std::to_string((2 * 2 + 1 + 2 + 2 * 2) * 75 * 4) + " B");
}

}  // namespace
}  // namespace tessera
