// SPDX-License-Identifier: Apache-2.0
// Placements along `model`: every pair of kernels, and the redistributions between them.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/nn/models/models.hpp>
#include <tessera/plan/layout/layer_placements.hpp>
#include <tessera/tensor/transition.hpp>

#include "expect_error.hpp"
#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::sharded;
using plan_test::tutorial;

const PartitionSpec whole{{}, {}}, columns{{}, {"model"}}, rows{{"model"}, {}};

/// Returns an MLP without biases of widths 2, 4, ... on two ranks, whose kernels have these specs.
PlanInput with_kernels(const std::vector<PartitionSpec>& kernels) {
  PlanInput input = sharded(tutorial({{"model", 2}}), Strategy::tensor);
  std::vector<Size> widths = {2};
  for (std::size_t l = 0; l < kernels.size(); ++l) {
    widths.push_back(static_cast<Size>(4 + 2 * l));
    input.parameter_specs["layer" + std::to_string(l + 1) + "/kernel"] = kernels[l];
  }
  input.model = mlp({.widths = widths, .activation = Activation::identity, .bias = false});
  return input;
}

/// Returns the error of place_layers().
std::string rejection(const PlanInput& input) {
  return test::error_of([&] { place_layers(input); });
}

/// Returns the redistributions of a step, such as "batch slice, 1 all_reduce | 2 slice": the layer
/// that wrote the tensor, and the transition. Those of gradients follow the bar.
std::string transitions(const PlanInput& input) {
  const Plan plan = make_plan(input);
  const StagePlan& stage = plan.stages.front();
  std::string forward, backward;
  for (const ListedAction& listed : stage.actions) {
    const auto* move = listed.as<Move>();
    if (move == nullptr) continue;
    const Slot& from = stage.slots[move->from];
    std::string name = from.path.substr(0, from.path.find('/'));
    if (name.find("layer") == 0) name = name.substr(5);
    const Slot& to = stage.slots[move->to];
    const bool is_gradient = from.role == TensorRole::gradient;
    std::string& text = is_gradient ? backward : forward;
    text +=
        (text.empty() ? "" : ", ") + name + " " +
        std::string(name_of(transition(from.placements[move->axis], to.placements[move->axis])));
  }
  return forward + " | " + backward;
}

TEST(LayerPlacements, EveryPairOfKernels) {
  struct Pair {
    PartitionSpec first, second;
    const char* transitions;
  };
  const std::vector<Pair> pairs = {
      {whole, whole, " | "},
      {whole, columns, "2 all_gather | 2 slice, 1 all_reduce"},
      {whole, rows, "1 slice, 2 all_reduce | 1 all_gather"},
      {columns, whole, "1 all_gather | 1 slice"},
      {columns, columns, "1 all_gather, 2 all_gather | 2 slice, 1 reduce_scatter"},
      {columns, rows, "2 all_reduce | "},
      {rows, whole, "batch slice, 1 all_reduce, batch slice | "},
      {rows, columns,
       "batch slice, 1 all_reduce, 2 all_gather, batch slice | 2 slice, 1 all_reduce"},
      {rows, rows, "batch slice, 1 reduce_scatter, 2 all_reduce, batch slice | 1 all_gather"},
  };
  for (const Pair& pair : pairs) {
    SCOPED_TRACE(pair.first.to_string() + ", " + pair.second.to_string());
    std::string expected = pair.transitions;
    // The backward pass repeats the redistribution of an input, except of the last one, which is
    // saved. In these pairs there is only one.
    if (pair.first == rows && pair.second != rows)
      expected.replace(expected.find(", batch slice |"), 15, " |");
    EXPECT_EQ(transitions(with_kernels({pair.first, pair.second})), expected);
  }
}

TEST(LayerPlacements, BlocksAndBiasesFollowTheKernel) {
  PlanInput input = with_kernels({columns, rows, whole});  // 2 x 4, 4 x 6, 6 x 8
  input.model = mlp({.widths = {2, 4, 6, 8}});
  const Plan plan = make_plan(input);
  const std::vector<ParameterPlan>& all = plan.stages.front().parameters.parameters;
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(plan.piece(1, all[0]), (Piece{{0, 2}, {2, 2}}));
  EXPECT_EQ(plan.piece(1, all[2]), (Piece{{2, 0}, {2, 6}}));
  EXPECT_EQ(plan.piece(1, all[4]), (Piece{{0, 0}, {6, 8}}));
  EXPECT_EQ(all[1].cuts, (Cuts{{.dimension = 0, .axes = {0}}}));
  EXPECT_EQ(all[3].cuts, Cuts());
  EXPECT_EQ(all[5].cuts, Cuts());
}

TEST(LayerPlacements, SequenceParallelSplitsRowsAfterASum) {
  PlanInput input = with_kernels({columns, rows, columns, rows, whole, whole});
  input.model = mlp({.widths = {2, 4, 6, 8, 10, 12, 14}});
  input.sequence_parallel = true;
  EXPECT_EQ(transitions(input),
            "2 reduce_scatter, 2 all_gather, 4 reduce_scatter, 4 all_gather, 2 all_gather | "
            "4 slice, 4 all_gather, 2 reduce_scatter, 2 all_gather");
}

// Norms and sums compute on the rows that a reduce-scatter gives to a rank. Only products gather
// rows.
TEST(LayerPlacements, ResidualBlocksKeepTheirRows) {
  PlanInput input = sharded(tutorial({{"model", 2}}), Strategy::tensor);
  input.model = residual_mlp({3, 4, 8, 2, 1});
  EXPECT_EQ(transitions(input),
            "block1 all_reduce, block2 all_reduce | block2 all_reduce, block1 all_reduce");
  input.sequence_parallel = true;
  const Plan plan = make_plan(input);
  std::string by_rows;
  for (const Slot& slot : plan.stages.front().slots)
    if (slot.role == TensorRole::activation &&
        placement_along("model", slot.placements, plan.input.mesh).is_shard(0))
      by_rows += slot.path + " ";
  EXPECT_NE(by_rows.find("block1/ln/output "), std::string::npos) << by_rows;
  EXPECT_NE(by_rows.find("block2/ln/output "), std::string::npos) << by_rows;
  EXPECT_NE(by_rows.find("block2/output "), std::string::npos) << by_rows;
  EXPECT_NE(by_rows.find("block2/ln/output.saved "), std::string::npos) << by_rows;
  std::string summed;
  for (const ParameterPlan& parameter : plan.stages.front().parameters.parameters)
    if (parameter.partial_gradient) summed += parameter.path + " ";
  EXPECT_EQ(summed,
            "block1/ln/scale block1/ln/bias block1/fc2/bias block2/ln/scale block2/ln/bias "
            "block2/fc2/bias ");
}

TEST(LayerPlacements, RejectsAUnitThatSumsOnlySomeOfItsGradientsOverModel) {
  PlanInput input = sharded(tutorial({{"model", 2}}), Strategy::tensor);
  input.model = residual_mlp({3, 4, 8, 2, 1});
  for (LayerSpec& layer : input.model.layers)
    if (layer.name.starts_with("block1/")) layer.unit = "block1";
  EXPECT_NO_THROW(make_plan(input));
  input.sequence_parallel = true;
  try {
    make_plan(input);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "model: unit block1: the gradients of block1/bias and of parameters before it are "
                 "summed over model, but not those between; give it a unit of its own");
  }
}

// The rules also choose how layers without parameters are split.
TEST(LayerPlacements, ModesOfAFieldFollowTheirRule) {
  PlanInput input = sharded(tutorial({{"model", 2}}), Strategy::tensor);
  input.model = fno({.grid = 5, .modes = 2, .width = 4, .layers = 2, .projection = 6});
  EXPECT_EQ(transitions(input),
            "1 all_reduce, 2 all_reduce, output all_reduce | 2 all_reduce, 1 all_reduce, "
            "lift all_reduce");
  input.rules["modes"] = {};
  EXPECT_EQ(transitions(input), "output all_reduce | 2 all_reduce");
}

// The test includes heads of width 1, whose q, k and v the ranks would otherwise split between
// heads.
TEST(LayerPlacements, HeadsAreNotCut) {
  PlanInput input = sharded(tutorial({{"model", 2}}), Strategy::tensor);
  for (const Size ranks : {2, 3, 4, 5, 7})
    for (const Size heads : {1, 2, 3, 4, 5, 6, 7, 12})
      for (const Size head_width : {1, 2, 3}) {
        SCOPED_TRACE(testing::Message() << heads << " heads of " << head_width << " on " << ranks);
        input.mesh = MeshShape({{"model", ranks}});
        input.model = transformer({.vocabulary = 8,
                                   .context = 5,
                                   .width = heads * head_width,
                                   .heads = heads,
                                   .blocks = 1,
                                   .inner_width = 8});
        if (heads % ranks == 0)
          EXPECT_NO_THROW(place_layers(input));
        else
          EXPECT_EQ(
              rejection(input),
              fmt::format("model.transformer.heads = {}: must be a multiple of the {} ranks of "
                          "the mesh axis model",
                          heads, ranks));
      }
}

}  // namespace
}  // namespace tessera
