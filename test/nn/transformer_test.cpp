// SPDX-License-Identifier: Apache-2.0
// Embedding, attention and the loss over classes, by themselves and as a transformer.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/models.hpp>

#include "nn/finite_differences.hpp"
#include "nn/layer_alone.hpp"

namespace tessera {
namespace {

using test::LayerAlone;
using test::network;
using test::to_device;
using test::to_host;

constexpr TransformerConfig small{
    .vocabulary = 5, .context = 4, .width = 6, .heads = 2, .blocks = 2, .inner_width = 7};

LayerSpec attention(Size positions, Size heads, Size width) {
  LayerSpec layer = causal_attention("y", "u", 0, heads, width);
  layer.in_positions = layer.positions = positions;
  return layer;
}

/// Reference: three loops over positions for one head of one sample.
std::vector<double> attend(const std::vector<double>& x, Size sample, Size head, Size heads,
                           Size positions, Size width) {
  const auto at = [&](Size position, Size part, Size column) {
    return x[(sample * positions + position) * 3 * heads * width + (3 * head + part) * width +
             column];
  };
  std::vector<double> out;
  for (Size i = 0; i < positions; ++i) {
    std::vector<double> weight;
    double sum = 0;
    for (Size j = 0; j <= i; ++j) {
      double score = 0;
      for (Size c = 0; c < width; ++c) score += at(i, 0, c) * at(j, 1, c);
      weight.push_back(std::exp(score / std::sqrt(static_cast<double>(width))));
      sum += weight.back();
    }
    for (Size c = 0; c < width; ++c) {
      double value = 0;
      for (Size j = 0; j <= i; ++j) value += weight[j] / sum * at(j, 2, c);
      out.push_back(value);
    }
  }
  return out;
}

TEST(Attention, IsTheWeightedMeanOfThisAndEarlierPositions) {
  const Size samples = 2, positions = 7, heads = 3, width = 5;
  const LayerAlone<double> alone(attention(positions, heads, width), samples);
  forward(alone.call);
  const auto x = to_host(alone.x[0]), y = to_host(alone.y);
  for (Size s = 0; s < samples; ++s)
    for (Size h = 0; h < heads; ++h) {
      const std::vector<double> expected = attend(x, s, h, heads, positions, width);
      for (Size i = 0; i < positions * width; ++i)
        EXPECT_NEAR(y[(s * positions + i / width) * heads * width + h * width + i % width],
                    expected[i], 1e-14);
    }
}

TEST(Embedding, AddsTheRowsOfTheClassAndOfThePosition) {
  const Size samples = 3, context = 4, width = 5, vocabulary = 7;
  const LayerAlone<double> alone(embedding("y", "u", vocabulary, context, width, 0), samples);
  forward(alone.call);
  const auto y = to_host(alone.y), classes = to_host(alone.call.batch.x),
             table = to_host(alone.parameters[0]), position = to_host(alone.parameters[1]);
  for (Size i = 0; i < samples * context; ++i)
    for (Size j = 0; j < width; ++j)
      EXPECT_EQ(y[i * width + j], table[static_cast<Size>(classes[i]) * width + j] +
                                      position[i % context * width + j]);
}

TEST(Embedding, ANumberThatIsNoClassGivesNaN) {
  for (const double number : {-1.0, 5.0}) {
    auto net = network(transformer(small), 1, LossKind::cross_entropy);
    EXPECT_TRUE(std::isnan(net.loss(to_device<double>({0, 1, number, 2}, 4, 1),
                                    to_device<double>({0, 1, 2, 3}, 4, 1))));
  }
}

// The customary count per token is 6 N + 12 blocks T width, with N multiplied parameters.
TEST(TransformerSizes, FlopsAreThoseOfTheClosedForm) {
  const TransformerConfig config{
      .vocabulary = 50, .context = 16, .width = 24, .heads = 3, .blocks = 2, .inner_width = 96};
  const ModelSpec model = transformer(config, {.bias = false});
  const Size multiplied = 2 * (4 * 24 * 24 + 2 * 24 * 96) + 24 * 50, samples = 5;
  EXPECT_EQ(count_flops(model.layers, samples).total(),
            samples * 16 * (6 * multiplied + 12 * 2 * 16 * 24));
}

}  // namespace
}  // namespace tessera
