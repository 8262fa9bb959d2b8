// SPDX-License-Identifier: Apache-2.0
// Routing of a mixture of experts on examples that can be followed by hand.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/models.hpp>

#include "nn/layer_alone.hpp"

namespace tessera {
namespace {

using test::LayerAlone;
using test::to_device;
using test::to_host;
using Doubles = std::vector<double>;

/// A router with these logits, after its forward pass. T: the compute type.
template <class T = double>
struct Routed {
  explicit Routed(const Routing& routing, const Doubles& logits, Size samples = 1,
                  const Doubles& bias = {})
      : sums("sums", 3 * routing.experts), alone(layer(routing, logits, samples), samples) {
    const auto experts = static_cast<std::size_t>(routing.experts);
    const std::vector<StateOf<T>> rounded(logits.begin(), logits.end());
    Kokkos::deep_copy(alone.x[0],
                      to_device(std::vector<T>(rounded.begin(), rounded.end()),
                                static_cast<Size>(logits.size() / experts), routing.experts));
    if (!bias.empty()) Kokkos::deep_copy(alone.parameters[0], to_device(bias, 1, routing.experts));
    alone.call.batch.routing = sums.data();
    forward(alone.call);
  }
  static LayerSpec layer(const Routing& routing, const Doubles& logits, Size samples) {
    LayerSpec layer = route("gates", "router", 0, routing);
    layer.sizes.emplace('p', static_cast<Size>(logits.size()) / (samples * routing.experts));
    return layer;
  }
  Vector<double> sums;
  LayerAlone<T> alone;
};

/// Expects what the formulas of README.md give. `bias` has one number per expert, or none.
void expect_routing(const Routing& routing, const Doubles& bias) {
  const Size samples = 3, positions = 7, experts = routing.experts, top_k = routing.top_k;
  Doubles logits;
  for (Size i = 0; i < samples * positions * experts; ++i)
    logits.push_back(static_cast<double>(i * i % 11));  // ties, of which the first is chosen
  const Routed<> routed(routing, logits, samples, bias);
  const Doubles gates = to_host(routed.alone.y);
  const auto count = static_cast<std::size_t>(experts);
  double z = 0, balance = 0;
  std::vector<Size> chosen(static_cast<std::size_t>(samples) * count);
  Doubles probabilities(chosen.size()), sums(3 * count), scores(count), merits(count);
  for (Size row = 0; row < samples * positions; ++row) {
    const double* const x = logits.data() + row * experts;
    double exponentials = 0, chosen_sum = 0;
    for (Size e = 0; e < experts; ++e) exponentials += std::exp(x[e]);
    z += 0.1 * std::pow(std::log(exponentials), 2);
    for (std::size_t e = 0; e < count; ++e) {
      scores[e] = routing.router == Router::softmax ? std::exp(x[e]) / exponentials
                                                    : 1 / (1 + std::exp(-x[e]));
      merits[e] = bias.empty() ? x[e] : scores[e] + bias[e];
    }
    const auto chooses = [&](std::size_t e) {
      Size before = 0;
      for (std::size_t other = 0; other < count; ++other)
        before += merits[other] > merits[e] || (merits[other] == merits[e] && other < e) ? 1 : 0;
      return before < top_k;
    };
    for (std::size_t e = 0; e < count; ++e) chosen_sum += chooses(e) ? scores[e] : 0;
    for (std::size_t e = 0; e < count; ++e) {
      const auto of_sample = static_cast<std::size_t>(row / positions) * count + e;
      const bool takes = chooses(e) && chosen[of_sample] < routing.capacity;
      const double p = std::exp(x[e]) / exponentials,
                   gate = routing.renormalize ? scores[e] / chosen_sum : scores[e];
      chosen[of_sample] += chooses(e) ? 1 : 0;
      probabilities[of_sample] += p;
      sums[e] += chooses(e) ? 1 : 0;
      sums[count + e] += chooses(e) && !takes ? 1 : 0;
      sums[2 * count + e] -= p * std::log(p);
      EXPECT_NEAR(gates[static_cast<std::size_t>(row) * count + e], takes ? gate : 0, 1e-15)
          << row << " " << e;
    }
  }
  for (std::size_t i = 0; i < chosen.size(); ++i)
    balance +=
        0.5 * static_cast<double>(experts * chosen[i]) / (top_k * positions) * probabilities[i];
  EXPECT_NEAR(to_host(routed.alone.loss)[0], balance, 1e-13 * balance);
  EXPECT_NEAR(to_host(routed.alone.loss)[1], z, 1e-13 * z);
  for (std::size_t i = 0; i < sums.size(); ++i)
    EXPECT_NEAR(to_host(routed.sums)[i], sums[i], 1e-12) << i;
  if (bias.empty()) return;
  backward(routed.alone.call);
  const Doubles gradient = to_host(routed.alone.gradients[0]);
  for (std::size_t e = 0; e < count; ++e)
    EXPECT_EQ(gradient[e], static_cast<double>(experts) * sums[e] -
                               static_cast<double>(samples * positions * top_k));
}

/// 37 are more than a kernel handles at once.
TEST(Experts, TakeTheFirstPositionsThatChooseThem) {
  for (const Size experts : {3, 37})
    for (const Router router : {Router::softmax, Router::sigmoid})
      for (const bool renormalize : {false, true})
        for (const double bias_rate : {0.0, 0.1}) {
          SCOPED_TRACE(testing::Message() << experts << " experts, " << name_of(router)
                                          << (renormalize ? ", renormalized, " : ", ")
                                          << (bias_rate > 0 ? "bias" : "no bias"));
          Doubles bias(bias_rate > 0 ? static_cast<std::size_t>(experts) : 0);
          for (std::size_t e = 0; e < bias.size(); ++e)
            bias[e] = static_cast<double>(e * e % 7) / 10;
          expect_routing({experts, 2, 2, 0.5, 0.1, router, renormalize, bias_rate}, bias);
        }
}

/// The choice by hand: without a bias experts 1 and 2; the bias makes it experts 0 and 2, whose
/// gates stay s / (sum of s) with the sigmoids 1/2, 3/4 and 9/10 of log 1, log 3 and log 9.
TEST(Experts, ABiasChoosesAndGatesAreThoseOfTheScores) {
  const Doubles logits{std::log(1.0), std::log(3.0), std::log(9.0)};
  const Routing routing{3, 2, 1, 0, 0, Router::sigmoid, true, 0.1};
  const auto expect_gates = [&](const Doubles& bias, const Doubles& expected) {
    const Doubles gates = to_host(Routed<>(routing, logits, 1, bias).alone.y);
    for (std::size_t e = 0; e < 3; ++e) EXPECT_NEAR(gates[e], expected[e], 1e-15) << e;
  };
  expect_gates({0, 0, 0}, {0, 15 / 33.0, 18 / 33.0});
  expect_gates({0.3, 0, 0}, {5 / 14.0, 0, 9 / 14.0});
}

TEST(Experts, ChooseNothingIfALogitIsNotANumber) {
  const Routed<> routed({3, 2, 2, 1, 1}, {1, NAN, 1, 3, 2, 1});
  const Doubles gates = to_host(routed.alone.y);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(gates[i], 0) << i;
  EXPECT_GT(gates[3], 0);
  EXPECT_TRUE(std::isnan(to_host(routed.alone.loss)[0]));
}

/// Experts that are chosen count, and take the position, however small their probability is: here
/// those with the logits 0 and -150, of four positions.
template <class T>
class ExpertsOf : public testing::Test {};
using AllTypes = testing::Types<float, double, BFloat16, Float16>;
TYPED_TEST_SUITE(ExpertsOf, AllTypes);

TYPED_TEST(ExpertsOf, MayHaveLogitsWhoseProbabilitiesUnderflow) {
  using T = TypeParam;
  Doubles logits;
  for (int position = 0; position < 4; ++position)
    for (const double logit : {-800.0, -200.0, 0.0, -150.0}) logits.push_back(logit);
  const Routed<T> routed({4, 2, 3, 0.5, 0}, logits);
  const Doubles sums = to_host(routed.sums);
  EXPECT_EQ(Doubles(sums.begin(), sums.begin() + 8), (Doubles{0, 0, 4, 4, 0, 0, 1, 1}));
  std::vector<bool> takes;
  for (const T gate : to_host(routed.alone.y)) takes.push_back(static_cast<StateOf<T>>(gate) > 0);
  const std::vector<bool> chosen{false, false, true, true}, none(4, false);
  for (std::size_t i = 0; i < takes.size(); ++i)
    EXPECT_EQ(takes[i], (i < 12 ? chosen : none)[i % 4]) << i;
  EXPECT_NEAR(to_host(routed.alone.loss)[0], 0.5 * 4 * 0.5 * 4, 1e-12);  // all on the third one
}

TEST(Experts, HavePositionsInTheirSlotsInOrder) {
  const Size samples = 2, positions = 5, width = 2, capacity = 2;
  for (const Size experts : {3, 37}) {
    const LayerAlone<double> alone(
        dispatch("slots", "router", 0, 1, width, positions, {experts, 1, capacity}), samples);
    Doubles gates, expected(static_cast<std::size_t>(samples * capacity * experts * width));
    for (Size row = 0; row < samples * positions; ++row)
      for (Size e = 0; e < experts; ++e) gates.push_back((row * e) % 5 == 1 ? 0.5 : 0);
    const Doubles x = to_host(alone.x[0]);
    for (Size sample = 0; sample < samples; ++sample)
      for (Size e = 0; e < experts; ++e)
        for (Size row = sample * positions, slot = 0; row < (sample + 1) * positions; ++row)
          if ((row * e) % 5 == 1 && slot < capacity) {
            const Size at = (sample * capacity + slot++) * experts + e;
            std::copy_n(x.begin() + row * width, width, expected.begin() + at * width);
          }
    Kokkos::deep_copy(alone.x[1], to_device(gates, samples * positions, experts));
    forward(alone.call);
    EXPECT_EQ(to_host(alone.y), expected);
  }
}

Size capacity(Size experts, Size top_k, double factor, Size positions = 10) {
  for (const LayerSpec& layer : transformer({.context = positions,
                                .blocks = 1,
                                .experts = experts,
                                .top_k = top_k,
                                .capacity_factor = factor})
                                    .layers)
    if (const auto* routing = std::get_if<Routing>(&layer.settings)) return routing->capacity;
  return 0;
}

TEST(Experts, HaveACapacityWithinLimits) {
  EXPECT_EQ(capacity(4, 2, 0), 10);   // no limit
  EXPECT_EQ(capacity(3, 1, 2.1), 7);  // 2.1 is more than 21 / 10 as a double
  EXPECT_EQ(capacity(4, 2, 1e300), 10);
  EXPECT_EQ(capacity(4, 2, 1e-300), 1);
}

/// Factors of up to two decimals, against integers.
TEST(Experts, HaveACapacityWithoutRoundingErrors) {
  for (const Size experts : {1, 2, 3, 5, 6, 7, 8, 12, 16})
    for (const Size top_k : {1, 2, 3})
      for (const Size positions : {1, 7, 10, 31, 64, 100})
        for (Size hundredths = 5; hundredths <= 400; hundredths += 5) {
          if (top_k > experts) continue;
          const Size parts = 100 * experts;
          const Size exact = (hundredths * top_k * positions + parts - 1) / parts;
          // The quotient is the double nearest to the decimal number, as in a file.
          ASSERT_EQ(capacity(experts, top_k, static_cast<double>(hundredths) / 100, positions),
                    std::min(exact, positions))
              << experts << " experts, top " << top_k << ", " << positions << " positions, factor "
              << hundredths << " / 100";
        }
}

}  // namespace
}  // namespace tessera
