// SPDX-License-Identifier: Apache-2.0
// Attention and embedding against their definitions.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/model_spec.hpp>

#include "nn/layer_alone.hpp"

namespace tessera {
namespace {

using test::LayerAlone;
using test::to_device;
using test::to_host;

LayerSpec attention(Size positions, Size heads, Size width) {
  LayerSpec layer = causal_attention("y", "u", 0, heads, width);
  layer.sizes.emplace('p', positions);
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
  const Size samples = 2, heads = 3, width = 5;
  // 65 and 600 positions have several blocks of queries, 600 several blocks of keys.
  for (const Size positions : {1, 7, 64, 65, 600}) {
    const LayerAlone<double> alone(attention(positions, heads, width), samples);
    forward(alone.call);
    const auto x = to_host(alone.x[0]), y = to_host(alone.y);
    for (Size s = 0; s < samples; ++s)
      for (Size h = 0; h < heads; ++h) {
        const std::vector<double> expected = attend(x, s, h, heads, positions, width);
        for (Size i = 0; i < positions * width; ++i)
          ASSERT_NEAR(y[(s * positions + i / width) * heads * width + h * width + i % width],
                      expected[i], 1e-13);
      }
  }
}

TEST(Attention, MemoryAndBlocksGrowLinearlyWithLongSequences) {
  const auto long_layer = [](Size t) {
    LayerSpec layer = attention(t, 1, 64);
    layer.tiling.queries = 64, layer.tiling.keys = 512;
    return layer;
  };
  const auto scratch = [&](Size t) {
    const LayerSpec layer = long_layer(t);
    return layer.kind->scratch(layer, 1);
  };
  EXPECT_EQ(scratch(1 << 14) - scratch(1 << 13), 2 * 64 * (1 << 13));
  // Hidden blocks are left out: half of the scores, and the upper halves of the blocks on the
  // diagonal.
  const double all = count_flops({long_layer(1 << 13)}, 1).total();
  EXPECT_LT(all, 0.51 * 6 * 2 * 64 * std::pow(2.0, 26) * 1.1);
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
    LayerAlone<double> alone(embedding("y", "u", 5, 2, 1, 0), 1);
    alone.call.batch.x = to_device<double>({number, 1}, 2, 1);
    forward(alone.call);
    EXPECT_TRUE(std::isnan(to_host(alone.y)[0]));
    EXPECT_FALSE(std::isnan(to_host(alone.y)[1]));
  }
}

}  // namespace
}  // namespace tessera
