// SPDX-License-Identifier: Apache-2.0
// Calls and work of models whose positions are split along `context`: 7 of a sequence over 3 ranks,
// 3, 2, 2, and the points of a grid.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/nn/models/models.hpp>

#include "expect_error.hpp"
#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::calls_of;

PlanInput split_input(ContextAttention attention, Size positions = 7, Size ranks = 3) {
  PlanInput input = plan_test::tutorial({{"context", ranks}});
  input.model =
      transformer({.vocabulary = 5, .context = positions, .width = 12, .heads = 6, .blocks = 1});
  input.loss = LossKind::cross_entropy;
  input.batch_size = input.samples = 2;
  input.context_attention = attention;
  return input;
}

std::string gradients_of(const PlanInput& input) {
  return "context all_reduce 1 x, " + std::to_string(input.model.num_parameters() * 4) + " B; ";
}

// Keys and values of all positions: (14, 24). They stay until backward, as the last gathered
// tensor.
TEST(ContextCalls, GatherKeysAndScatterTheirGradients) {
  const PlanInput input = split_input(ContextAttention::gather);
  const std::string bytes = std::to_string(14 * 24 * 4);
  EXPECT_EQ(calls_of(input), gradients_of(input) + "context reduce_scatter 1 x, " + bytes +
                                 " B; context all_gather 1 x, " + bytes + " B");
}

// A position of both samples has 2 * 24 numbers. Keys make two hops each way, gradients three.
TEST(ContextCalls, SendEveryPartRoundTheRing) {
  const PlanInput input = split_input(ContextAttention::ring);
  const auto bytes = [](Size positions) { return std::to_string(positions * 2 * 24 * 4); };
  EXPECT_EQ(calls_of(input), gradients_of(input) + "context send 7 x, " +
                                 bytes(2 * (3 + 2) + 3 + 2 + 2) + " B; context receive 7 x, " +
                                 bytes(2 * (2 + 2) + 2 + 2 + 3) + " B");
  EXPECT_EQ(calls_of(input, {.steps = 1}, 1),
            gradients_of(input) + "context send 7 x, " + bytes(2 * (2 + 3) + 2 + 3 + 2) +
                " B; context receive 7 x, " + bytes(2 * (3 + 2) + 3 + 2 + 2) + " B");
}

// A rank's block of q, k, v (36 columns) goes there twice, that of dy once; y and the gradient of
// q, k, v come back from a third of the columns.
TEST(ContextCalls, ExchangePositionsForHeads) {
  const PlanInput input = split_input(ContextAttention::all_to_all);
  const Size own = 3 * 2, all = 7 * 2;
  EXPECT_EQ(calls_of(input), gradients_of(input) + "context all_to_all 5 x, " +
                                 std::to_string((own * (36 + 36 + 12) + all * (4 + 12)) * 4) +
                                 " B");
}

// Terms of all modes (samples, 2 M M 2 w) are scattered, and products of modes gathered, both ways.
TEST(ContextCalls, SumModesOfAGridAndGatherTheirProducts) {
  PlanInput input = plan_test::tutorial({{"context", 3}});
  input.model = fno({.grid = 7, .modes = 3, .width = 4, .layers = 2, .projection = 5});
  input.batch_size = input.samples = 5;
  const std::string bytes = std::to_string(2 * 2 * 5 * 18 * 2 * 4 * 4);
  const std::string moved =
      "context reduce_scatter 4 x, " + bytes + " B; context all_gather 4 x, " + bytes + " B";
  input.loss = LossKind::mse;
  EXPECT_EQ(calls_of(input), gradients_of(input) + moved);
  // Two norms of each sample.
  input.loss = LossKind::relative_l2;
  EXPECT_EQ(calls_of(input), "context all_reduce 2 x, " +
                                 std::to_string((input.model.num_parameters() + 2 * 5) * 4) +
                                 " B; " + moved);
}

TEST(ContextWork, PartsOfAGridShareTheWork) {
  PlanInput input = plan_test::tutorial({{"context", 4}});
  input.model = fno({.grid = 32, .modes = 8, .width = 4, .layers = 1, .projection = 5});
  input.loss = LossKind::mse;
  for (const bool zigzag : {true, false}) {
    input.zigzag = zigzag;
    const std::vector<PassCount> flops = make_plan(input).flops_along_context();
    ASSERT_EQ(flops.size(), 4);
    for (const PassCount& part : flops) EXPECT_EQ(part.total(), flops[0].total());
    input.mesh = MeshShape({{"context", 1}});
    EXPECT_LE(4 * flops[0].total(), make_plan(input).flops.total());
    input.mesh = MeshShape({{"context", 4}});
  }
}

TEST(ContextWork, ZigzagSharesAreEqualWorkUnderTheMask) {
  for (const bool zigzag : {true, false}) {
    PlanInput input = split_input(ContextAttention::gather, 1024, 4);
    input.zigzag = zigzag;
    const std::vector<PassCount> flops = make_plan(input).flops_along_context();
    ASSERT_EQ(flops.size(), 4);
    if (zigzag)
      for (const PassCount& part : flops) EXPECT_EQ(part.total(), flops[0].total());
    else
      EXPECT_GT(flops[3].total(), 1.5 * flops[0].total());
  }
}

TEST(ContextRules, RejectAWayOfAttentionWithoutAttention) {
  PlanInput input = plan_test::tutorial({{"context", 2}});
  input.model = fno({.grid = 4, .modes = 2, .width = 3, .layers = 1, .projection = 4});
  input.loss = LossKind::mse;
  input.context_attention = ContextAttention::ring;
  EXPECT_NE(test::error_of([&] {
              make_plan(input);
            }).find("distributed.context_attention = \"ring\": needs a model with attention"),
            std::string::npos);
}

TEST(ContextRules, RejectModelsThatNeedWholeSamples) {
  PlanInput input = plan_test::tutorial({{"context", 2}});
  input.loss = LossKind::mse;
  const auto error = [&] { return test::error_of([&] { make_plan(input); }); };
  EXPECT_NE(error().find("has one position per sample"), std::string::npos);
  input.model = pinn({.width = 3, .layers = 2}, {.activation = Activation::tanh});
  EXPECT_NE(error().find("needs whole samples"), std::string::npos);
  input.model = fno({.grid = 6, .modes = 3, .width = 3, .layers = 1, .projection = 4});
  input.mesh = MeshShape({{"context", 4}});
  EXPECT_NE(error().find("they must divide the 18 modes of a rank of model"), std::string::npos);
  input.loss = LossKind::poisson;
  EXPECT_NE(error().find("the loss poisson needs whole samples"), std::string::npos);
  input = split_input(ContextAttention::all_to_all, 8, 4);
  EXPECT_NE(error().find("the 6 heads of a rank of model"), std::string::npos);
}

}  // namespace
}  // namespace tessera
