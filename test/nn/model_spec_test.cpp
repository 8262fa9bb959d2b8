// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/models.hpp>

#include "device_data.hpp"
#include "expect_error.hpp"
#include "nn/serial_model.hpp"

namespace tessera {
namespace {

using test::to_host;

/// "layer1/product <- data; ..."
std::string layers_of(const ModelSpec& model) {
  std::string text;
  for (const LayerSpec& layer : model.layers) {
    text += layer.name + " (" + std::string(layer.kind->name) + ")";
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

TEST(ModelSpec, AppendRejectsLayersThatDoNotFit) {
  ModelSpec model{{}, 3, Initializer::lecun_normal, 42, 4};
  const ParameterSpec kernel{"kernel", {3, 5}, {"", ""}};
  const Size h = model.append(linear("h", "u", LayerSpec::data, kernel));
  const auto error = [&](const LayerSpec& layer) {
    return test::error_of([&] { model.append(layer); });
  };
  EXPECT_EQ(error(linear("y", "u", h, kernel)), "model: y reads 3 columns, but h has 5");
  EXPECT_EQ(error(pointwise("y", "u", LayerSpec::data, 5, Activation::relu)),
            "model: y reads 5 columns, but x has 3");
  EXPECT_EQ(error(add("y", "u", LayerSpec::data, h, 3)), "model: y reads 3 columns, but h has 5");
  EXPECT_EQ(error(jet_activation("y", "u", h, 5, Activation::tanh)),
            "model: y reads 6 positions of a sample, but h has 4");
  EXPECT_EQ(error(fourier("y", "u", h, {3, 1, 5})),
            "model: y reads 9 positions of a sample, but h has 4");
  EXPECT_EQ(error(pointwise("y", "u", 1, 5, Activation::relu)),
            "model: y reads layer 1, but 1 layers precede it");
  EXPECT_EQ(error(causal_attention("y", "u", h, 2, 1)), "model: y reads 6 columns, but h has 5");
  LayerSpec bad = pointwise("y", "u", h, 5, Activation::relu, "embed");
  bad.parameters[0].shape = {4};
  EXPECT_EQ(error(bad), "model: y cannot turn 5 columns into 5 with its parameters");
  EXPECT_EQ(error(linear("y", "u", LayerSpec::data, kernel)),
            "model: y has a second parameter u/kernel");
  EXPECT_EQ(model.append(pointwise("y", "u", h, 5, Activation::relu)), 1);
  EXPECT_EQ(model.output_positions(), 4);
}

TEST(Fno, InitialModesAreUniform) {
  const ModelSpec model = fno({.grid = 8, .modes = 4, .width = 8, .layers = 1});
  const test::SerialModel<double> net(model, 1);
  const auto r = to_host(net.parameter(net.parameters(), "layer1/modes"));
  double least = 1, most = 0, sum = 0;
  for (const double value : r) {
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
  }
  const double limit = 1.0 / 64;
  EXPECT_GE(least, 0);
  EXPECT_LT(least, 0.01 * limit);
  EXPECT_LT(most, limit);
  EXPECT_GT(most, 0.99 * limit);
  EXPECT_NEAR(sum / static_cast<double>(r.size()), limit / 2, 0.02 * limit);
}

TEST(Flops, AreThoseOfTheClosedForm) {
  const PassCount tutorial = count_flops(mlp({.widths = {4, 64, 1}}).layers, 32);
  EXPECT_EQ(tutorial.forward, 20480);
  EXPECT_EQ(tutorial.total(), 45056);  // 61440 if the data had a gradient

  // The customary count per token is 6 N + 12 blocks T width, with N multiplied parameters.
  const ModelSpec decoder = transformer(
      {.vocabulary = 50, .context = 16, .width = 24, .heads = 3, .blocks = 2, .inner_width = 96},
      {.bias = false});
  const Size multiplied = 2 * (4 * 24 * 24 + 2 * 24 * 96) + 24 * 50, samples = 5;
  EXPECT_EQ(count_flops(decoder.layers, samples).total(),
            samples * 16 * (6 * multiplied + 12 * 2 * 16 * 24));

  // Two products for each transform, one of complex numbers for each mode, and the dense layers.
  // Along the first dimension k1 and -k1 are one.
  const Size n = 32, m = 12, w = 32;
  const ModelSpec model = fno({.grid = n, .modes = m, .width = w, .layers = 4, .projection = 128});
  const Size transform = 2 * (2 * m * n * n * w + 2 * (m + 1) * 2 * m * n * w);
  const Size layer = 2 * transform + 8 * 2 * m * m * w * w + 2 * n * n * w * w;
  const Size dense = 2 * n * n * (w * 128 + 128);
  const Size lift = 2 * n * n * 3 * w;  // no gradient of x
  EXPECT_EQ(count_flops(model.layers, samples).forward, samples * (4 * layer + dense + lift));
  // Transforms have no parameters: their backward pass is another transform.
  EXPECT_EQ(count_flops(model.layers, samples).backward,
            samples * (4 * (2 * layer - 2 * transform) + 2 * dense + lift));
}

/// "m n k times launches; ..."
std::string shapes_text(const std::vector<GemmShape>& products) {
  std::string text;
  for (const GemmShape& p : products)
    text += fmt::format("{} {} {} {} {}; ", p.m, p.n, p.k, p.times, p.launches);
  return text;
}

/// y = x W has this product forward, and dW = x^T dy and dx = dy W^T backward.
void expect_products(const LayerSpec& layer, Size samples, const GemmShape& y) {
  SCOPED_TRACE(layer.kind->name);
  const LayerProducts found = layer_products(layer, samples);
  EXPECT_EQ(shapes_text(found.forward), shapes_text({y}));
  EXPECT_EQ(shapes_text(found.backward), shapes_text({{y.k, y.n, y.m, y.times, y.launches},
                                                      {y.m, y.k, y.n, y.times, y.launches}}));
  EXPECT_TRUE(is_kernel(layer, 0));
}

TEST(Products, FollowFromExpressions) {
  std::mt19937 random(5);
  const auto draw = [&] { return static_cast<Size>(1 + random() % 40); };
  for (int i = 0; i < 50; ++i) {
    const Size samples = draw(), positions = draw(), in = draw(), out = draw(), experts = draw();
    LayerSpec dense = linear("y", "u", 0, {"kernel", {in, out}, {"", ""}});
    dense.sizes.emplace('p', positions);
    expect_products(dense, samples, {samples * positions, out, in});
    dense.inputs = {LayerSpec::data};  // x has no gradient
    EXPECT_EQ(shapes_text(layer_products(dense, samples).backward),
              shapes_text({{in, out, samples * positions}}));

    LayerSpec tied = tied_linear("y", "u", 0, 0, out, in);  // dT = dy^T x
    tied.sizes.emplace('p', positions);
    EXPECT_EQ(shapes_text(layer_products(tied, samples).backward),
              shapes_text({{out, in, samples * positions}, {samples * positions, in, out}}));

    LayerSpec grouped = linear("y", "u", 0, {"kernel", {experts, in, out}, {"", "", ""}});
    grouped.sizes.emplace('k', positions);
    expect_products(grouped, samples, {samples * positions, out, in, experts});
    grouped.sizes.at('e').own = {0, 2};  // experts of a rank
    expect_products(grouped, samples, {samples * positions, out, in, 2});

    // Products of complex numbers are those of their real and imaginary parts. A GPU makes as many
    // at once as its scratch memory has room for.
    LayerSpec modes = mode_product("y", "u", 0, {99, in, out}, 0);
    const Size count = 2 * in * in;
    modes.tiling = {4 * out * out * 3, 1, 1, false, 0};
    expect_products(modes, samples, {samples, 2 * out, 2 * out, count});
    modes.tiling.batches = true;
    expect_products(modes, samples, {samples, 2 * out, 2 * out, count, (count + 2) / 3});
  }
}

// Backward computes the slopes of tanh and sigmoid from their values.
TEST(LayerKinds, FunctionsAreThoseOfActivationsAndSoftmax) {
  const auto functions = [](const LayerSpec& layer) { return layer.kind->functions(layer); };
  const auto of = [&](Activation a) {
    const LayerFunctions count = functions(pointwise("y", "x", 0, 5, a));
    return std::pair(count.exponentials.forward, count.exponentials.backward);
  };
  EXPECT_EQ(of(Activation::relu), std::pair(0.0, 0.0));
  EXPECT_EQ(of(Activation::tanh), std::pair(5.0, 0.0));
  EXPECT_EQ(of(Activation::gelu), std::pair(5.0, 7.0));
  LayerSpec attention = causal_attention("y", "x", 0, 2, 8);
  attention.sizes.emplace('p', 7);  // one block of 7 x 7 scores
  const LayerFunctions softmax = functions(attention);
  EXPECT_EQ(softmax.exponentials.forward, 2 * 49);
  EXPECT_EQ(softmax.exponentials.backward, 2 * 2 * 49);
  EXPECT_EQ(softmax.row_sums.forward, 2 * 2 * 7);
  EXPECT_EQ(softmax.row_sums.backward, 2 * 7);
}

}  // namespace
}  // namespace tessera
