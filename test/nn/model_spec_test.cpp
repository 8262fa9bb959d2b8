// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/nn/flops.hpp>
#include <tessera/nn/model_spec.hpp>

namespace tessera {
namespace {

TEST(ModelSpec, TheTutorialModelHas385ParametersInTwoUnits) {
  const ModelSpec model = mlp({.widths = {4, 64, 1}});
  EXPECT_EQ(model.num_parameters(), 385);
  EXPECT_EQ(model.unit_elements(0), 320);
  EXPECT_EQ(model.unit_elements(1), 65);
  EXPECT_EQ(model.unit_offset(0), 0);
  EXPECT_EQ(model.unit_offset(1), 320);
  EXPECT_EQ(model.input_width(), 4);
  EXPECT_EQ(model.output_width(), 1);
}

TEST(ModelSpec, ActivationsFollowEveryLayerButTheLast) {
  const ModelSpec model = mlp({.widths = {3, 5, 7, 2}, .activation = Activation::tanh});
  EXPECT_EQ(model.layers[0].activation, Activation::tanh);
  EXPECT_EQ(model.layers[1].activation, Activation::tanh);
  EXPECT_EQ(model.layers[2].activation, Activation::identity);
}

TEST(ModelSpec, ParametersCarryPathShapeAndAlternatingLogicalAxes) {
  const auto all = mlp({.widths = {3, 5, 7, 2}}).parameters();
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0].path, "layer1/kernel");
  EXPECT_EQ(all[0].shape, (std::vector<Size>{3, 5}));
  EXPECT_EQ(all[0].logical_axes, (std::vector<std::string>{"embed", "mlp"}));
  EXPECT_EQ(all[2].logical_axes, (std::vector<std::string>{"mlp", "embed"}));
  EXPECT_EQ(all[4].logical_axes, (std::vector<std::string>{"embed", "mlp"}));
  EXPECT_EQ(all[3].path, "layer2/bias");
  EXPECT_EQ(all[3].shape, (std::vector<Size>{7}));
  EXPECT_EQ(all[3].logical_axes, (std::vector<std::string>{"embed"}));
  EXPECT_EQ(all[3].layer, 1);
}

TEST(ModelSpec, WithoutBiasThereIsOnlyTheKernel) {
  const ModelSpec model = mlp({.widths = {3, 5, 2}, .bias = false});
  EXPECT_EQ(model.num_parameters(), 25);
  EXPECT_EQ(model.parameters().size(), 2u);
}

TEST(ModelSpec, BadWidthsAreRejected) {
  EXPECT_THROW(mlp({.widths = {}}), ConfigError);
  EXPECT_THROW(mlp({.widths = {4}}), ConfigError);
  EXPECT_THROW(mlp({.widths = {4, 0, 1}}), ConfigError);
  EXPECT_THROW(mlp({.widths = {4, -64, 1}}), ConfigError);
}

TEST(Flops, TheTutorialStepTakes45056) {
  const ModelSpec model = mlp({.widths = {4, 64, 1}});
  EXPECT_EQ(forward_flops(model, 32), 20480);
  EXPECT_EQ(step_flops(model, 32), 45056);  // 61440 if the data had a gradient
}

}  // namespace
}  // namespace tessera
