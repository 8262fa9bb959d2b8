// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/nn/layers/layer_row.hpp>
#include <tessera/nn/models/models.hpp>

namespace tessera {
namespace {

/// "layer1/product <- data; ..."
std::string layers_of(const ModelSpec& model) {
  std::string text;
  for (const LayerSpec& layer : model.layers) {
    text += layer.name + " (" + std::string(row_of(layer).name) + ")";
    for (const Size input : layer.inputs)
      text += " " + (input == LayerSpec::data ? "x" : model.layers[input].name);
    text += "; ";
  }
  return text;
}

/// Every parameter as "path (shape) stream".
std::string parameters_of(const ModelSpec& model) {
  std::string text;
  for (const LayerSpec& layer : model.layers)
    for (const ParameterSpec& parameter : layer.parameters) {
      text += path_of(layer, parameter);
      for (std::size_t d = 0; d < parameter.shape.size(); ++d)
        text += " " + std::to_string(parameter.shape[d]) + parameter.logical_axes[d];
      if (parameter.initial == Initial::drawn) text += " #" + std::to_string(parameter.stream);
      text += "; ";
    }
  return text;
}

TEST(ModelSpec, TheTutorialModelHas385Parameters) {
  const ModelSpec model = mlp({.widths = {4, 64, 1}});
  EXPECT_EQ(model.num_parameters(), 385);
  EXPECT_EQ(model.input_width, 4);
  EXPECT_EQ(model.output_width(), 1);
  EXPECT_EQ(layers_of(model),
            "layer1/product (linear) x; layer1/output (pointwise) layer1/product; "
            "layer2/product (linear) layer1/output; layer2/output (pointwise) layer2/product; ");
  EXPECT_EQ(parameters_of(model),
            "layer1/kernel 4embed 64mlp #0; layer1/bias 64mlp; layer2/kernel 64mlp 1embed #2; "
            "layer2/bias 1embed; ");
}

TEST(ModelSpec, ActivationsFollowEveryProductButTheLast) {
  const ModelSpec model = mlp({.widths = {3, 5, 7, 2}, .activation = Activation::tanh});
  EXPECT_EQ(model.layers[1].activation, Activation::tanh);
  EXPECT_EQ(model.layers[3].activation, Activation::tanh);
  EXPECT_EQ(model.layers[5].activation, Activation::identity);
}

TEST(ModelSpec, WhatDoesNothingIsNoLayer) {
  const ModelSpec model = mlp({.widths = {3, 5, 2}, .bias = false});
  EXPECT_EQ(layers_of(model),
            "layer1/product (linear) x; layer1/output (pointwise) layer1/product; "
            "layer2/output (linear) layer1/output; ");
  EXPECT_EQ(model.num_parameters(), 25);
}

TEST(ModelSpec, ResidualBlocksReadTheStreamTwice) {
  const ModelSpec model = residual_mlp({3, 5, 7, 1, 2});
  EXPECT_EQ(layers_of(model),
            "input/product (linear) x; input/output (pointwise) input/product; "
            "block1/ln/output (layer_norm) input/output; "
            "block1/fc1/product (linear) block1/ln/output; "
            "block1/fc1/output (pointwise) block1/fc1/product; "
            "block1/fc2/product (linear) block1/fc1/output; "
            "block1/fc2/output (pointwise) block1/fc2/product; "
            "block1/output (add) input/output block1/fc2/output; "
            "output/product (linear) block1/output; output/output (pointwise) output/product; ");
  EXPECT_EQ(model.num_parameters(), 3 * 5 + 5 + 5 + 5 + 5 * 7 + 7 + 7 * 5 + 5 + 5 * 2 + 2);
}

TEST(ModelSpec, BadSizesAreRejected) {
  EXPECT_THROW(mlp({.widths = {}}), ConfigError);
  EXPECT_THROW(mlp({.widths = {4}}), ConfigError);
  EXPECT_THROW(mlp({.widths = {4, 0, 1}}), ConfigError);
  EXPECT_THROW(mlp({.widths = {4, -64, 1}}), ConfigError);
  EXPECT_THROW(residual_mlp({3, 0, 7, 1, 2}), ConfigError);
  EXPECT_THROW(residual_mlp({3, 5, 7, 0, 2}), ConfigError);
}

// Every kind answers what plans ask, and its first way to lie is whole.
TEST(LayerRows, AreComplete) {
  const ModelSpec model = residual_mlp({3, 5, 7, 1, 2});
  for (const LayerSpec& layer : model.layers) {
    const std::vector<Layout> layouts = row_of(layer).layouts(layer);
    ASSERT_FALSE(layouts.empty());
    for (const Layout& layout : layouts) {
      EXPECT_EQ(layout.inputs.size(), layer.inputs.size()) << layer.name;
      EXPECT_EQ(layout.input_gradients.size(), layer.inputs.size()) << layer.name;
      EXPECT_EQ(layout.parameters.size(), layer.parameters.size()) << layer.name;
      EXPECT_EQ(layout.parameter_gradients.size(), layer.parameters.size()) << layer.name;
    }
    EXPECT_TRUE(layouts.front().output.is_replicate()) << layer.name;
  }
}

TEST(Flops, TheTutorialStepTakes45056) {
  const PassCount flops = count_flops(mlp({.widths = {4, 64, 1}}).layers, 32);
  EXPECT_EQ(flops.forward, 20480);
  EXPECT_EQ(flops.total(), 45056);  // 61440 if the data had a gradient
}

}  // namespace
}  // namespace tessera
