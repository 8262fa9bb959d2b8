// SPDX-License-Identifier: Apache-2.0
// Embedding, attention and the loss over classes, by themselves and as a transformer.
#include <algorithm>
#include <cmath>
#include <numeric>
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

// 65 and 600 positions have several blocks of queries, 600 several blocks of keys.
constexpr Size lengths[] = {1, 7, 64, 65, 600};

TEST(Attention, IsTheWeightedMeanOfThisAndEarlierPositions) {
  const Size samples = 2, heads = 3, width = 5;
  for (const Size positions : lengths) {
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

/// Returns the sum of y dy with x moved by `step` along `direction`.
double moved(const LayerAlone<double>& alone, const std::vector<double>& direction, double step) {
  auto x = to_host(alone.x[0]);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += step * direction[i];
  Kokkos::deep_copy(alone.x[0], to_device(x, alone.x[0].extent(0), alone.x[0].extent(1)));
  forward(alone.call);
  const auto y = to_host(alone.y), dy = to_host(alone.dy);
  return std::inner_product(y.begin(), y.end(), dy.begin(), 0.0);
}

TEST(Attention, GradientsOfManyBlocksAgreeWithFiniteDifferences) {
  for (const Size positions : lengths) {
    const LayerAlone<double> alone(attention(positions, 2, 3), 2);
    alone.run();
    const auto dx = to_host(alone.dx[0]),
               direction = to_host(test::normal_matrix<double>(1, dx.size(), 12));
    const double h = 1e-5, along = moved(alone, direction, h),
                 against = moved(alone, direction, -2 * h);
    EXPECT_NEAR((along - against) / (2 * h),
                std::inner_product(dx.begin(), dx.end(), direction.begin(), 0.0), 1e-6)
        << positions;
  }
}

/// Largest difference between results of 16 bits and of float32.
template <class T>
double rounding(const Matrix<T>& narrow, const Matrix<float>& wide) {
  const auto a = to_host(narrow);
  const auto b = to_host(wide);
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(static_cast<float>(a[i])) - b[i]));
  return most;
}

// Sums over blocks are not rounded, so the error does not grow with the number of blocks.
TEST(Attention, RoundsToSixteenBitsOnceForAnyNumberOfBlocks) {
  for (const Size positions : lengths) {
    const LayerAlone<BFloat16> narrow(attention(positions, 2, 3), 1);
    const LayerAlone<float> wide(attention(positions, 2, 3), 1);
    const auto copy = [](const Matrix<BFloat16>& from, const Matrix<float>& to) {
      std::vector<float> values;
      for (const BFloat16 value : to_host(from)) values.push_back(static_cast<float>(value));
      Kokkos::deep_copy(to, to_device(values, from.extent(0), from.extent(1)));
    };
    copy(narrow.x[0], wide.x[0]), copy(narrow.dy, wide.dy);
    narrow.run(), wide.run();
    EXPECT_LT(rounding(narrow.y, wide.y), 0x1p-6) << positions;
    EXPECT_LT(rounding(narrow.dx[0], wide.dx[0]), 0x1p-4) << positions;
  }
}

TEST(Attention, MemoryAndBlocksGrowLinearlyWithLongSequences) {
  const auto scratch = [](Size t) {
    const LayerSpec layer = attention(t, 1, 64);
    return row_of(layer).scratch(layer, 1);
  };
  EXPECT_EQ(scratch(1 << 14) - scratch(1 << 13), 2 * 64 * (1 << 13));
  // Hidden blocks are left out: half of the scores, and the upper halves of the blocks on the
  // diagonal.
  const double all = count_flops({attention(1 << 13, 1, 64)}, 1).total();
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
