// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "measure/statistics.hpp"

namespace tessera::bench {
namespace {

/// A case of a launch on a machine whose speed follows `slowness`, by round.
std::vector<Round> rounds(
    const std::string& launch, double seconds, const std::function<double(int)>& slowness,
    const std::function<double()>& noise = [] { return 1.0; }, int n = 10) {
  std::vector<Round> made;
  for (int k = 0; k < n; ++k) {
    const double slow = slowness(k);
    made.push_back({launch, 1.0 * k, seconds * slow * noise(), {0.001 * slow, 0.004 * slow}});
  }
  return made;
}

double steady(int) { return 1; }
double switching(int round) { return round % 3 == 1 ? 1.35 : 1; }
double rising(int round) { return 1 + 0.04 * round; }

TEST(Rounds, TheMachineCancelsOut) {
  for (const auto& slowness : {steady, switching, rising}) {
    const auto one = rounds("a", 8, slowness), two = rounds("a", 5, slowness);
    const Statistics ratio = paired_ratio(two, one);
    EXPECT_EQ(ratio.n, 10);
    EXPECT_NEAR(ratio.median, 1.6, 1e-12);
    ASSERT_TRUE(ratio.ci95_low);
    EXPECT_NEAR(ratio.ci95_low.value(), 1.6, 1e-12);
    for (const double value : machine_free(one, 0.5)) EXPECT_NEAR(value, 8 / 0.002, 1e-9);
  }
}

TEST(Rounds, TheKernelThatACaseFollowsCorrectsIt) {
  auto one = rounds("a", 1, steady);
  for (std::size_t k = 0; k < one.size(); ++k) {
    const double slow = switching(static_cast<int>(k));
    one[k].seconds *= slow;
    one[k].machine.product_seconds *= slow;
    one[k].machine.memory_seconds *= k % 2 ? 1.2 : 1;
  }
  EXPECT_EQ(best_share({one}), 1);
  for (Round& round : one) std::swap(round.machine.product_seconds, round.machine.memory_seconds);
  EXPECT_EQ(best_share({one}), 0);
}

TEST(Rounds, ArePairedWithinALaunchOnly) {
  auto base = rounds("a", 1, steady), other = rounds("b", 2, steady);
  EXPECT_EQ(paired_ratio(base, other).n, 0);
  other.insert(other.begin(), {"a", 0, 3, {0.001, 0.004}});
  EXPECT_EQ(paired_ratio(base, other).n, 1);
  EXPECT_DOUBLE_EQ(paired_ratio(base, other).median, 3);
}

TEST(Rounds, IntervalsComeFromBetweenThem) {
  const auto few = rounds(
      "a", 1, steady, [] { return 1.0; }, 5);
  EXPECT_FALSE(statistics_of(few, {1, 2, 3, 4, 5, 6, 7}).ci95_low) << "however many steps";
  const auto ten = rounds("a", 1, rising);
  const Statistics s = statistics_of(ten, {0.5, 1, 9});
  EXPECT_DOUBLE_EQ(s.median, 1.18);
  EXPECT_EQ(s.n, 3);
  ASSERT_TRUE(s.ci95_low);
  EXPECT_DOUBLE_EQ(s.ci95_low.value(), 1.04);  // the sign test's second and ninth of ten
  EXPECT_DOUBLE_EQ(s.ci95_high.value(), 1.32);
}

// Student's interval of two launches is wide: 12.7 standard errors.
TEST(Rounds, LaunchesThatDifferWidenTheInterval) {
  auto both = rounds("a", 1, steady);
  for (const Round& round : rounds("b", 1.02, steady)) both.push_back(round);
  const Statistics s = statistics_of(both, {1});
  ASSERT_TRUE(s.ci95_low);
  const double half = 12.706 * std::log(1.02) / 2;
  EXPECT_NEAR(s.ci95_low.value(), std::sqrt(1.02) * std::exp(-half), 1e-9);
  EXPECT_NEAR(s.ci95_high.value(), std::sqrt(1.02) * std::exp(half), 1e-9);
}

// A launch that was killed in its first round, and the one that resumed the study.
TEST(Rounds, ALaunchThatWasCutShortGivesRoundsButIsNoLaunchOfTheInterval) {
  const auto whole = rounds("b", 1, rising);
  auto both = rounds(
      "a", 3, steady, [] { return 1.0; }, 1);
  both.insert(both.end(), whole.begin(), whole.end());
  const Statistics s = statistics_of(both, {1});
  EXPECT_DOUBLE_EQ(s.median, 1.2) << "of eleven rounds";
  EXPECT_DOUBLE_EQ(s.ci95_low.value(), 1.04);
  EXPECT_DOUBLE_EQ(s.ci95_high.value(), 1.36);
  EXPECT_EQ(s.ci95_problem, "");
  EXPECT_EQ(count_launches(both).whole, 1);
  EXPECT_EQ(count_launches(both).partial, 1);
}

TEST(Rounds, AnIntervalThatSaysNothingIsAbsent) {
  auto both = rounds("a", 1, steady);
  for (const Round& round : rounds("b", 1.5, steady)) both.push_back(round);
  const Statistics s = statistics_of(both, {1});
  EXPECT_FALSE(s.ci95_low);
  EXPECT_FALSE(s.ci95_high);
  EXPECT_EQ(s.ci95_problem, "the ends of the interval differ by more than a factor of 10");
  both.resize(5);
  EXPECT_EQ(statistics_of(both, {1}).ci95_problem, "5 of the 6 rounds that an interval needs");
}

TEST(Rounds, DriftIsThatOfTheMachine) {
  EXPECT_DOUBLE_EQ(drift_of(rounds("a", 7, steady)), 1);
  EXPECT_NEAR(drift_of(rounds("a", 1, switching)), 1.35, 1e-9);
}

TEST(Rounds, ResolutionIsThatOfTheScatter) {
  EXPECT_DOUBLE_EQ(resolution_of(rounds("a", 1, switching)), 1.03) << "nothing but the machine";
  EXPECT_TRUE(std::isinf(resolution_of(rounds(
      "a", 1, steady, [] { return 1.0; }, 3))));
  double sign = 1;
  const auto noisy = rounds("a", 1, steady, [&] { return 1 + 0.05 * (sign = -sign); });
  EXPECT_GT(resolution_of(noisy), 1.05);
}

/// Returns the share of A/A comparisons of whole studies with a false verdict, and the share of
/// comparisons that find a case that is 10 % slower.
struct Rates {
  double wrong = 0, found = 0;
};
Rates rates_of(const std::function<double(std::mt19937&)>& noise,
               const std::function<double(int)>& before, const std::function<double(int)>& after) {
  std::mt19937 engine(3);
  constexpr int studies = 200, cases = 18;
  Rates rates;
  for (int study = 0; study < studies; ++study) {
    std::vector<double> same, ratios;
    for (int k = 0; k < cases; ++k) {
      const auto scatter = [&] { return noise(engine); };
      const auto a = machine_free(rounds("a", 1, before, scatter, 12), 0.5);
      const auto b = machine_free(rounds("b", k == 0 ? 1.1 : 1, after, scatter, 12), 0.5);
      same.push_back(rank_sum_test(a, b));
      ratios.push_back(typical_ratio(a, b));
    }
    const auto corrected = holm(same);
    const auto differs = [&](int k) {
      return corrected[k] <= 0.05 && std::abs(std::log(ratios[k])) > std::log(1 + smallest_effect);
    };
    rates.found += differs(0) / double(studies);
    bool any = false;
    for (int k = 1; k < cases; ++k) any |= differs(k);
    rates.wrong += any / double(studies);
  }
  return rates;
}

TEST(Rounds, FalseVerdictsAreRareAndTenPercentAreFound) {
  const auto calm = [](std::mt19937& engine) {
    return std::exp(std::normal_distribution<double>(0, 0.015)(engine));
  };
  const auto heavy = [&](std::mt19937& engine) {  // one round in ten takes up to twice as long
    std::uniform_real_distribution<double> uniform;
    return calm(engine) * (uniform(engine) < 0.1 ? 1 + uniform(engine) : 1);
  };
  for (const auto& machine : {steady, switching, rising}) {
    const Rates quiet = rates_of(calm, steady, machine), tails = rates_of(heavy, steady, machine);
    EXPECT_LE(quiet.wrong, 0.05);
    EXPECT_LE(tails.wrong, 0.05);
    EXPECT_GE(quiet.found, 0.95);
    EXPECT_GE(tails.found, 0.65);
  }
}

}  // namespace
}  // namespace tessera::bench
