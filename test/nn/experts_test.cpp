// SPDX-License-Identifier: Apache-2.0
// Routing of a mixture of experts on examples that can be followed by hand, and its keys.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/models.hpp>

#include "expect_error.hpp"
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

TEST(Experts, TakeTheFirstPositionsThatChooseThem) {
  // Positions 0, 1 and 3 choose expert 0, which takes two; position 2 chooses expert 2.
  const double l = std::log(2);
  const Routed<> routed({3, 1, 2, 0.5, 0.1}, {l, 0, 0, l, 0, 0, 0, 0, l, l, 0, 0});
  const Doubles gates = to_host(routed.alone.y), expected{0.5, 0, 0, 0.5, 0, 0, 0, 0, 0.5, 0, 0, 0};
  for (std::size_t i = 0; i < gates.size(); ++i) EXPECT_NEAR(gates[i], expected[i], 1e-15) << i;
  const Doubles sums = to_host(routed.sums);
  const double entropy_of_half = 0.5 * std::log(2), entropy_of_quarter = 0.25 * std::log(4);
  const Doubles counts{3,
                       0,
                       1,
                       1,
                       0,
                       0,
                       3 * entropy_of_half + entropy_of_quarter,
                       4 * entropy_of_quarter,
                       3 * entropy_of_quarter + entropy_of_half};
  for (std::size_t i = 0; i < counts.size(); ++i) EXPECT_NEAR(sums[i], counts[i], 1e-14) << i;
  // Shares of the choices 3/4, 0, 1/4; sums of probabilities 7/4, 1, 5/4; log sum log 4.
  const Doubles loss = to_host(routed.alone.loss);
  EXPECT_NEAR(loss[0], 0.5 * 3 * (0.75 * 1.75 + 0.25 * 1.25), 1e-14);  // balance
  EXPECT_NEAR(loss[1], 0.1 * 4 * std::pow(std::log(4), 2), 1e-14);     // z-loss
}

TEST(Experts, AreChosenInOrderAtATie) {
  const Routed<> routed({3, 2, 2, 0, 0}, {1, 1, 1, 0, 1, 1});
  const Doubles gates = to_host(routed.alone.y);
  const double larger = std::exp(1) / (1 + 2 * std::exp(1));
  const Doubles expected{1.0 / 3, 1.0 / 3, 0, 0, larger, larger};
  for (std::size_t i = 0; i < gates.size(); ++i) EXPECT_NEAR(gates[i], expected[i], 1e-15) << i;
}

TEST(Experts, MayBeMoreThanAKernelHandlesAtOnce) {
  const Size samples = 3, positions = 7, experts = 37, top_k = 3, capacity = 2;
  Doubles logits;
  for (Size i = 0; i < samples * positions * experts; ++i)
    logits.push_back(static_cast<double>(i * i % 11));  // ties in each row
  const Routed<> routed({experts, top_k, capacity, 0.5, 0.1}, logits, samples);
  const Doubles gates = to_host(routed.alone.y);
  double balance = 0, z = 0;
  std::vector<Size> chosen(static_cast<std::size_t>(samples * experts));
  Doubles probabilities(chosen.size());
  for (Size row = 0; row < samples * positions; ++row) {
    const double* const x = logits.data() + row * experts;
    double sum = 0;
    for (Size e = 0; e < experts; ++e) sum += std::exp(x[e]);
    z += 0.1 * std::pow(std::log(sum), 2);
    for (Size e = 0; e < experts; ++e) {
      Size before = 0;
      for (Size other = 0; other < experts; ++other)
        before += x[other] > x[e] || (x[other] == x[e] && other < e) ? 1 : 0;
      const auto of_sample = static_cast<std::size_t>(row / positions * experts + e);
      const bool takes = before < top_k && chosen[of_sample]++ < capacity;
      probabilities[of_sample] += std::exp(x[e]) / sum;
      EXPECT_NEAR(gates[static_cast<std::size_t>(row * experts + e)],
                  takes ? std::exp(x[e]) / sum : 0, 1e-15)
          << row << " " << e;
    }
  }
  for (std::size_t i = 0; i < chosen.size(); ++i)
    balance +=
        0.5 * experts * static_cast<double>(chosen[i]) / (top_k * positions) * probabilities[i];
  EXPECT_NEAR(to_host(routed.alone.loss)[0], balance, 1e-13 * balance);
  EXPECT_NEAR(to_host(routed.alone.loss)[1], z, 1e-13 * z);
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
  const LayerAlone<double> alone(dispatch("slots", "router", 0, 1, 2, 3, {2, 1, 2}), 2);
  Kokkos::deep_copy(alone.x[0], to_device<double>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 6, 2));
  // Positions 0 and 2 of sample 0 and 1 and 2 of sample 1 are for expert 1; two of the others not.
  Kokkos::deep_copy(alone.x[1], to_device<double>({0, .5, .5, 0, 0, .5, 0, 0, 0, .5, 0, .5}, 6, 2));
  forward(alone.call);
  EXPECT_EQ(to_host(alone.y), (Doubles{3, 4, 1, 2, 0, 0, 5, 6, 0, 0, 9, 10, 0, 0, 11, 12}));
}

TEST(Experts, HaveSlotsIfThereAreManyOfThem) {
  const Size samples = 2, positions = 5, experts = 37, capacity = 2;
  const LayerAlone<double> alone(
      dispatch("slots", "router", 0, 1, 1, positions, {experts, 1, capacity}), samples);
  Doubles rows, gates, expected(static_cast<std::size_t>(samples * capacity * experts));
  for (Size row = 0; row < samples * positions; ++row) {
    rows.push_back(static_cast<double>(row + 1));
    for (Size e = 0; e < experts; ++e) gates.push_back((row * e) % 5 == 1 ? 0.5 : 0);
  }
  for (Size sample = 0; sample < samples; ++sample)
    for (Size e = 0; e < experts; ++e)
      for (Size row = sample * positions, slot = 0; row < (sample + 1) * positions; ++row)
        if ((row * e) % 5 == 1 && slot < capacity)
          expected[static_cast<std::size_t>((sample * capacity + slot++) * experts + e)] =
              rows[static_cast<std::size_t>(row)];
  Kokkos::deep_copy(alone.x[0], to_device(rows, rows.size(), 1));
  Kokkos::deep_copy(alone.x[1], to_device(gates, rows.size(), gates.size() / rows.size()));
  forward(alone.call);
  EXPECT_EQ(to_host(alone.y), expected);
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

TEST(Experts, HaveACapacityForEachSequence) {
  EXPECT_EQ(capacity(4, 1, 1), 3);     // 2.5 positions
  EXPECT_EQ(capacity(4, 2, 1.25), 7);  // 6.25
  EXPECT_EQ(capacity(4, 2, 100), 10);
  EXPECT_EQ(capacity(4, 2, 0), 10);  // no limit
  EXPECT_EQ(capacity(64, 1, 0.1), 1);
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

TEST(Experts, RejectWrongKeys) {
  const auto wrong = [](const TransformerConfig& config) {
    return test::error_of([&] { transformer(config); });
  };
  EXPECT_EQ(wrong({.experts = 3, .top_k = 4}), "model.transformer.top_k = 4: must be from 1 to 3");
  EXPECT_EQ(wrong({.experts = 30, .top_k = 9}), "model.transformer.top_k = 9: must be from 1 to 8");
  EXPECT_EQ(wrong({.top_k = 1}), "model.transformer.top_k = 1: needs model.transformer.experts");
  EXPECT_EQ(wrong({.balance_loss = 1}),
            "model.transformer.balance_loss = 1.0: needs model.transformer.experts");
}

}  // namespace
}  // namespace tessera
