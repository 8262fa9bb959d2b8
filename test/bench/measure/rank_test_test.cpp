// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "measure/statistics.hpp"

namespace tessera::bench {
namespace {

using Values = std::vector<double>;

/// Returns rank_sum_test(a, b) by enumeration of all choices of a.size() values.
double by_enumeration(const Values& a, const Values& b) {
  Values both = a;
  both.insert(both.end(), b.begin(), b.end());
  const auto rank_sum = [&](const std::vector<bool>& chosen) {
    double sum = 0;
    for (std::size_t i = 0; i < both.size(); ++i)
      for (std::size_t j = 0; chosen[i] && j < both.size(); ++j)
        sum += i == j ? 1 : both[j] < both[i] ? 1 : both[j] == both[i] ? 0.5 : 0;
    return sum;
  };
  std::vector<bool> chosen(both.size());
  std::fill(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(a.size()), true);
  const double expected = static_cast<double>(a.size() * (both.size() + 1)) / 2;
  const double seen = std::abs(rank_sum(chosen) - expected);
  double as_far = 0, all = 0;
  do {
    ++all;
    as_far += std::abs(rank_sum(chosen) - expected) >= seen - 1e-9;
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  return as_far / all;
}

TEST(RankTest, AgreesWithEnumerationOfAllPermutations) {
  std::mt19937 engine(1);
  for (std::size_t n = 1; n <= 6; ++n)
    for (std::size_t m = 1; m <= 6; ++m)
      for (const int levels : {3, 1000}) {  // with and without ties
        std::uniform_int_distribution<int> draw(1, levels);
        Values a(n), b(m);
        for (double& value : a) value = draw(engine);
        for (double& value : b) value = draw(engine);
        EXPECT_NEAR(rank_sum_test(a, b), by_enumeration(a, b), 1e-12) << n << " and " << m;
      }
}

TEST(RankTest, FewestValuesJustReachTheLevel) {
  for (const double level : {0.5, 0.05, 0.005, 0.0005}) {
    const auto n = static_cast<std::size_t>(fewest_values(level));
    EXPECT_LE(rank_sum_test(Values(n, 1), Values(n, 2)), level);
    EXPECT_GT(rank_sum_test(Values(n - 1, 1), Values(n - 1, 2)), level);
  }
  EXPECT_EQ(fewest_values(0.05), 4);
}

TEST(RankTest, KnownProbabilities) {
  EXPECT_DOUBLE_EQ(rank_sum_test({1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}), 2.0 / 252);
  EXPECT_DOUBLE_EQ(rank_sum_test({1, 1, 1}, {1, 1, 1}), 1);
  EXPECT_DOUBLE_EQ(rank_sum_test({}, {1, 2}), 1);
}

// 50 x 50 is computed exactly, 51 x 51 by the normal approximation.
TEST(RankTest, LargeSetsComeNearTheNormalDistribution) {
  std::mt19937 engine(5);
  std::normal_distribution<double> normal;
  for (const double shift : {0.0, 0.3, 0.6}) {
    Values a(50), b(50);
    for (double& value : a) value = normal(engine);
    for (double& value : b) value = normal(engine) + shift;
    const double exact = rank_sum_test(a, b);
    a.push_back(0.5 * shift);
    b.push_back(0.5 * shift);
    EXPECT_NEAR(rank_sum_test(a, b), exact, 0.02 + 0.2 * exact) << shift;
  }
}

TEST(RankTest, HolmCorrectsForTheNumberOfCases) {
  const Values corrected = holm({0.01, 0.04, 0.03, 0.5});
  EXPECT_DOUBLE_EQ(corrected[0], 0.04);
  EXPECT_DOUBLE_EQ(corrected[2], 0.09);
  EXPECT_DOUBLE_EQ(corrected[1], 0.09) << "no smaller than that of a smaller probability";
  EXPECT_DOUBLE_EQ(corrected[3], 0.5);
}

TEST(RankTest, RatioIsThatOfTheMiddle) {
  EXPECT_DOUBLE_EQ(typical_ratio({1, 2, 4}, {3, 6, 12}), 3);
  EXPECT_DOUBLE_EQ(typical_ratio({10, 10, 10, 1000}, {11, 11, 11, 11}), 1.1);
}

/// Rounds that scatter by `noise`, one in ten of them an outlier of up to ten times.
Values rounds(std::mt19937& engine, std::size_t n, double noise) {
  std::normal_distribution<double> normal(0, noise);
  std::uniform_real_distribution<double> uniform;
  Values values(n);
  for (double& value : values) {
    value = std::exp(normal(engine));
    if (uniform(engine) < 0.1) value *= 1 + 9 * uniform(engine);
  }
  return values;
}

// The rate of false verdicts is at most the level, and a difference of the stated size is found.
TEST(RankTest, HoldsItsLevelUnderHeavyTailsAndFindsTheDetectableRatio) {
  std::mt19937 engine(2);
  constexpr double level = 0.05;
  int wrong = 0, found = 0;
  Values enoughs;
  constexpr int trials = 2000;
  for (int trial = 0; trial < trials; ++trial) {
    const Values a = rounds(engine, 10, 0.02), b = rounds(engine, 10, 0.02);
    wrong += rank_sum_test(a, b) <= level;
    const double enough = detectable_ratio(a, b, level);
    Values shifted = b;
    for (double& value : shifted) value *= enough * 1.0001 / typical_ratio(a, b);
    found += rank_sum_test(a, shifted) <= level;
    enoughs.push_back(enough);
  }
  EXPECT_LE(wrong, 1.3 * level * trials);
  EXPECT_EQ(found, trials);
  EXPECT_LT(median(enoughs), 1.06);
}

TEST(RankTest, TooFewRoundsFindNothing) {
  EXPECT_TRUE(std::isinf(detectable_ratio({1, 2, 3}, {1, 2, 3}, 0.05)));
  EXPECT_FALSE(std::isinf(detectable_ratio({1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}, 0.05)));
}

}  // namespace
}  // namespace tessera::bench
