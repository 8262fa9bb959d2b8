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
  explicit Routed(const Routing& routing, const Doubles& logits, Size samples = 1)
      : sums("sums", 3 * routing.experts), alone(layer(routing, logits, samples), samples) {
    const auto experts = static_cast<std::size_t>(routing.experts);
    const std::vector<StateOf<T>> rounded(logits.begin(), logits.end());
    Kokkos::deep_copy(alone.x[0],
                      to_device(std::vector<T>(rounded.begin(), rounded.end()),
                                static_cast<Size>(logits.size() / experts), routing.experts));
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

/// 37 are more than a kernel handles at once.
TEST(Experts, TakeTheFirstPositionsThatChooseThem) {
  const Size samples = 3, positions = 7, top_k = 2, capacity = 2;
  for (const Size experts : {3, 37}) {
    Doubles logits;
    for (Size i = 0; i < samples * positions * experts; ++i)
      logits.push_back(static_cast<double>(i * i % 11));  // ties, of which the first is chosen
    const Routed<> routed({experts, top_k, capacity, 0.5, 0.1}, logits, samples);
    const Doubles gates = to_host(routed.alone.y);
    const auto count = static_cast<std::size_t>(experts);
    double z = 0, balance = 0;
    std::vector<Size> chosen(static_cast<std::size_t>(samples * experts));
    Doubles probabilities(chosen.size()), sums(3 * count);
    for (Size row = 0; row < samples * positions; ++row) {
      const double* const x = logits.data() + row * experts;
      double sum = 0;
      for (Size e = 0; e < experts; ++e) sum += std::exp(x[e]);
      z += 0.1 * std::pow(std::log(sum), 2);
      for (Size e = 0; e < experts; ++e) {
        Size before = 0;
        for (Size other = 0; other < experts; ++other)
          before += x[other] > x[e] || (x[other] == x[e] && other < e) ? 1 : 0;
        const auto number = static_cast<std::size_t>(e);
        const auto of_sample = static_cast<std::size_t>(row / positions * experts + e);
        const bool chooses = before < top_k, takes = chooses && chosen[of_sample] < capacity;
        const double p = std::exp(x[e]) / sum;
        chosen[of_sample] += chooses ? 1 : 0;
        probabilities[of_sample] += p;
        sums[number] += chooses ? 1 : 0;
        sums[count + number] += chooses && !takes ? 1 : 0;
        sums[2 * count + number] -= p * std::log(p);
        EXPECT_NEAR(gates[static_cast<std::size_t>(row * experts + e)], takes ? p : 0, 1e-15)
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
  }
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
