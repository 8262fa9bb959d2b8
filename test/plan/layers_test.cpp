// SPDX-License-Identifier: Apache-2.0
// Layouts along `model`: every pair of kernels, one behind the other.
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::sharded;
using plan_test::tutorial;

const PartitionSpec whole{{}, {}}, columns{{}, {"model"}}, rows{{"model"}, {}};

/// Layers of 2, 4, ... with these kernels, on two ranks.
PlanInput with_kernels(const std::vector<PartitionSpec>& kernels) {
  PlanInput input = sharded(tutorial({{"model", 2}}), Strategy::tensor);
  std::vector<Size> widths = {2};
  for (std::size_t l = 0; l < kernels.size(); ++l) {
    widths.push_back(static_cast<Size>(4 + 2 * l));
    input.parameter_specs["layer" + std::to_string(l + 1) + "/kernel"] = kernels[l];
  }
  input.model = mlp({.widths = widths});
  return input;
}

TEST(Layouts, EveryPairOfKernels) {
  using enum Transition;
  struct Pair {
    PartitionSpec first, second;
    /// Of the input of layer 1, its product, the input and product of layer 2, and the loss.
    std::array<Transition, 5> forward;
    /// Of the loss's gradient and of that of layer 2's input.
    std::array<Transition, 2> backward;
  };
  const std::vector<Pair> pairs = {
      {whole, whole, {keep, keep, keep, keep, keep}, {keep, keep}},
      {whole, columns, {keep, keep, keep, keep, all_gather}, {slice, all_reduce}},
      {whole, rows, {keep, keep, slice, all_reduce, keep}, {keep, all_gather}},
      {columns, whole, {keep, keep, all_gather, keep, keep}, {keep, slice}},
      {columns, columns, {keep, keep, all_gather, keep, all_gather}, {slice, reduce_scatter}},
      {columns, rows, {keep, keep, keep, all_reduce, keep}, {keep, keep}},
      {rows, whole, {slice, all_reduce, keep, keep, keep}, {keep, keep}},
      {rows, columns, {slice, all_reduce, keep, keep, all_gather}, {slice, all_reduce}},
      {rows, rows, {slice, all_reduce, slice, all_reduce, keep}, {keep, all_gather}},
  };
  for (const Pair& pair : pairs) {
    SCOPED_TRACE(pair.first.to_string() + ", " + pair.second.to_string());
    const Layouts layouts(with_kernels({pair.first, pair.second}));
    EXPECT_EQ((std::array{layouts.to_input(0), layouts.to_output(0), layouts.to_input(1),
                          layouts.to_output(1), layouts.to_input(2)}),
              pair.forward);
    EXPECT_EQ((std::array{layouts.to_gradient(2), layouts.to_gradient(1)}), pair.backward);
    EXPECT_EQ(layouts.to_gradient(0), keep) << "nobody needs the gradient of data";
  }
}

TEST(Layouts, InputIsMadeAgainUnlessItIsStillThere) {
  const auto remade = [](const std::vector<PartitionSpec>& kernels) {
    const Layouts layouts(with_kernels(kernels));
    std::string text;
    for (Size l = 0; l < layouts.size(); ++l) text += layouts.remake_input(l) ? "1" : "0";
    return text;
  };
  EXPECT_EQ(remade({whole, columns, rows}), "000");
  EXPECT_EQ(remade({rows, rows}), "10") << "the last layer's input is the last thing made";
  EXPECT_EQ(remade({rows}), "0");
  EXPECT_EQ(remade({columns, columns}), "01") << "the gathered output of the last layer is, here";
}

TEST(Layouts, BlocksAndBiasesFollowTheKernel) {
  const PlanInput input = with_kernels({columns, rows, whole});  // 2 x 4, 4 x 6, 6 x 8
  const Layouts layouts(input);
  EXPECT_EQ(layouts.kernel_block(input.model, 0, 1), (Block{{0, 2}, {2, 2}}));
  EXPECT_EQ(layouts.kernel_block(input.model, 1, 1), (Block{{2, 0}, {2, 6}}));
  EXPECT_EQ(layouts.kernel_block(input.model, 2, 1), (Block{{0, 0}, {6, 8}}));
  EXPECT_EQ(layouts[0].bias(), Placement::shard(0));
  EXPECT_EQ(layouts[1].bias(), Placement::replicate());
  EXPECT_EQ(layouts[2].bias(), Placement::replicate());
}

TEST(Layouts, SequenceParallelSplitsRowsBetweenARowAndAColumnLayer) {
  PlanInput input = with_kernels({columns, rows, columns, rows, whole, whole});
  input.sequence_parallel = true;
  const Layouts layouts(input);
  std::string by_rows;
  for (Size l = 0; l < layouts.size(); ++l) by_rows += layouts.by_rows(l) ? "1" : "0";
  EXPECT_EQ(by_rows, "010100");
  EXPECT_EQ(layouts.to_output(1), Transition::reduce_scatter);
  EXPECT_EQ(layouts.to_input(2), Transition::all_gather);
  EXPECT_EQ(layouts.to_gradient(2), Transition::reduce_scatter);
  EXPECT_EQ(layouts.to_gradient(4), Transition::slice) << "whole on every rank";
  EXPECT_TRUE(layouts.remake_input(2));
}

TEST(Layouts, RefuseWhatNoLayerCanDo) {
  const auto message = [](const PlanInput& input) -> std::string {
    try {
      Layouts layouts(input);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  PlanInput input = with_kernels({whole, whole});
  input.sequence_parallel = true;
  EXPECT_EQ(message(input),
            "distributed.sequence_parallel = true: needs a row-parallel layer between two others; "
            "this model has none");
  input = with_kernels({columns, rows, whole});
  input.sequence_parallel = true;
  input.mesh = MeshShape({{"model", 2}, {"data", 2}});
  EXPECT_EQ(message(input),
            "distributed.sequence_parallel = true: needs the mesh axis model behind data");
  input = with_kernels({columns});
  input.parameter_specs["layer1/bias"] = PartitionSpec{{}};
  EXPECT_NE(
      message(input).find("parameter_specs.\"layer1/bias\" = \"P(None)\": must be \"P('model')\""),
      std::string::npos)
      << message(input);
  input.parameter_specs = {{"layer2/kernel", whole}};
  EXPECT_NE(message(input).find("must be the path of a parameter"), std::string::npos);
  input.parameter_specs = {{"layer1/kernel", PartitionSpec{{"data"}, {}}}};
  input.mesh = MeshShape({{"data", 2}, {"model", 2}});
  EXPECT_NE(message(input).find("may name the axis model only"), std::string::npos);
}

}  // namespace
}  // namespace tessera
