// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::tutorial;

PlanInput nine_layers(Size units, Activation activation = Activation::gelu) {
  PlanInput input = tutorial({{"data", 1}});
  input.model = mlp({.widths = std::vector<Size>(10, 16), .activation = activation});
  input.activation_checkpointing.units = units;
  return input;
}

// A layer with gelu saves its output, which the next layer reads, and the input of gelu.
TEST(PlanRecomputation, KeepsInputsOfSegmentsAndTheLastSegmentWhole) {
  const auto tensors = [](Size units) {
    return static_cast<double>(make_plan(nine_layers(units)).memory(0).activations) / (32 * 16 * 4);
  };
  EXPECT_NEAR(tensors(0), 2 * 8 + 2, 0.5);
  EXPECT_LT(tensors(1), 8 + 5);
  EXPECT_LT(tensors(3), 2 + 2 * 3 + 3) << "segments of three of nine layers";
  EXPECT_LT(tensors(3), tensors(1));
  EXPECT_LT(tensors(3), tensors(6));
}

// All segments but the last one repeat their forward pass. The last layer of a segment is repeated
// only if its backward pass needs the input of the activation, as that of gelu does.
TEST(PlanRecomputation, CostsAForwardPassOfAllButTheLastSegment) {
  const Size layer = 2 * 32 * 16 * 16;
  EXPECT_EQ(make_plan(nine_layers(0)).recomputed, 0);
  EXPECT_EQ(make_plan(nine_layers(1)).recomputed, 8 * layer);
  EXPECT_EQ(make_plan(nine_layers(3)).recomputed, 6 * layer);
  EXPECT_EQ(make_plan(nine_layers(9)).recomputed, 0);
  EXPECT_EQ(make_plan(nine_layers(3, Activation::tanh)).recomputed, 4 * layer)
      << "tanh needs only its output, and the outputs of segments are saved";
  EXPECT_EQ(make_plan(nine_layers(1)).flops.total(), make_plan(nine_layers(0)).flops.total());
}

// The first segment is gathered for its recomputation and stays gathered for its backward pass. The
// second segment is not recomputed.
TEST(PlanRecomputation, GathersParametersToRecompute) {
  PlanInput input = tutorial({{"fsdp", 2}});
  input.strategy = Strategy::fsdp;
  input.model = mlp({.widths = {4, 8, 8, 8, 2}, .activation = Activation::gelu});
  input.prefetch = false;
  input.activation_checkpointing.units = 2;
  const Plan plan = make_plan(input);
  std::string text;
  for (const ListedAction& listed : plan.stages.front().actions) {
    if (const auto* gather = listed.as<Gather>()) text += fmt::format("g{}", gather->bucket + 1);
    if (const auto* reduce = listed.as<ReduceScatter>())
      text += fmt::format("r{}", reduce->bucket + 1);
  }
  EXPECT_EQ(text, "g1g2g3g4r4g3r3g1g2r2g1r1");
}

}  // namespace
}  // namespace tessera
