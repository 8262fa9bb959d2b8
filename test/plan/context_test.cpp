// SPDX-License-Identifier: Apache-2.0
// Calls and work of models whose positions are split along `context`: 7 of a sequence over 3 ranks,
// 3, 2, 2, and the points of a grid.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/nn/models/models.hpp>

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

}  // namespace
}  // namespace tessera
