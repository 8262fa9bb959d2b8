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
using test::normal;
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

TEST(Attention, IsTheWeightedMeanOfWhatAPositionSees) {
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

TEST(Attention, OutputsDoNotDependOnLaterPositions) {
  const LayerAlone<double> alone(attention(6, 2, 4), 1);
  forward(alone.call);
  const auto before = to_host(alone.y);
  auto x = to_host(alone.x[0]);
  for (Size column = 0; column < alone.layer.in; ++column) x[4 * alone.layer.in + column] += 1;
  Kokkos::deep_copy(alone.x[0], to_device(x, 6, alone.layer.in));
  forward(alone.call);
  const auto after = to_host(alone.y);
  for (Size i = 0; i < 6 * alone.layer.out; ++i) {
    if (i / alone.layer.out < 4)
      EXPECT_EQ(after[i], before[i]) << i;
    else
      EXPECT_NE(after[i], before[i]) << i;
  }
}

TEST(Embedding, RanksWithPartsOfTheTableAddUpToTheWhole) {
  const Size samples = 3, context = 4, width = 5, vocabulary = 7;
  const Gemm<double> gemm;
  const auto table = normal(vocabulary, width, 1), position = normal(context, width, 2),
             dy = normal(samples * context, width, 3);
  std::vector<double> numbers;
  for (Size i = 0; i < samples * context; ++i) numbers.push_back(static_cast<double>(i * 5 % 7));
  const auto x = to_device(numbers, samples * context, 1);
  struct Result {
    std::vector<double> y, table, position;
  };
  const auto run = [&](Size first, Size rows) {
    LayerSpec layer = embedding("y", "u", vocabulary, context, width, 0);
    layer.parameters[0].begin = first;
    layer.parameters[0].shape[0] = rows;
    const Matrix<double> y("y", samples * context, width);
    const Vector<double> dtable("dt", rows * width), dposition("dp", context * width);
    LayerCall<double> call{layer, gemm, samples};
    call.batch.x = x;
    call.parameters = {alias_vector<const double>(table.data() + first * width, rows * width),
                       alias_vector<const double>(position.data(), context * width)};
    call.output = y;
    forward(call);
    call.output_gradient = dy;
    call.parameter_gradients = {dtable, dposition};
    backward(call);
    return Result{to_host(y), to_host(dtable), to_host(dposition)};
  };
  const Result whole = run(0, 7), head = run(0, 3), tail = run(3, 4);
  for (std::size_t i = 0; i < whole.y.size(); ++i)
    EXPECT_EQ(head.y[i] + tail.y[i], whole.y[i]) << i;
  std::vector<double> joined = head.table;
  joined.insert(joined.end(), tail.table.begin(), tail.table.end());
  EXPECT_EQ(joined, whole.table);
  EXPECT_EQ(tail.position, whole.position);
  const auto t = to_host(table), p = to_host(position), d = to_host(dy);
  double gradient = 0;
  for (Size i = 0; i < samples * context; ++i) {
    EXPECT_EQ(whole.y[i * width],
              t[static_cast<Size>(numbers[i]) * width] + p[i % context * width]);
    if (numbers[i] == 5) gradient += d[i * width];
  }
  EXPECT_NEAR(whole.table[5 * width], gradient, 1e-15);
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
