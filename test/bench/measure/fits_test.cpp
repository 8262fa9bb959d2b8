// SPDX-License-Identifier: Apache-2.0
#include "measure/fits.hpp"

#include <gtest/gtest.h>

namespace tessera::bench {
namespace {

TEST(Fits, AmdahlFindsTheSerialFractionOfExactTimes) {
  const auto seconds = [](double p) { return 2.0 * (0.1 + 0.9 / p); };
  const auto fit = fit_amdahl({1, 2, 4, 8}, {seconds(1), seconds(2), seconds(4), seconds(8)});
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->serial_fraction, 0.1, 1e-12);
  EXPECT_NEAR(fit->one_rank_seconds, 2.0, 1e-12);
  EXPECT_NEAR(fit->line.r_squared.value(), 1, 1e-12);
  for (const double residual : fit->line.residuals) EXPECT_NEAR(residual, 0, 1e-12);
}

// By hand: x = 1/p = 1, 1/2, 1/4; least squares line through (x, T).
TEST(Fits, AmdahlResidualsAreWhatIsLeft) {
  const auto fit = fit_amdahl({1, 2, 4}, {1.0, 0.6, 0.3});
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->line.b, 32.0 / 35, 1e-12);
  EXPECT_NEAR(fit->line.a, 0.1, 1e-12);
  double sum = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(fit->line.fitted[i] + fit->line.residuals[i], (std::vector{1.0, 0.6, 0.3})[i],
                1e-12);
    sum += fit->line.residuals[i];
  }
  EXPECT_NEAR(sum, 0, 1e-12) << "residuals of a line with an intercept cancel";
  EXPECT_LT(fit->line.r_squared.value(), 1);
}

TEST(Fits, AmdahlMayBeBetterThanLinear) {
  const auto fit = fit_amdahl({1, 2, 4}, {4.0, 1.8, 0.8});
  ASSERT_TRUE(fit);
  EXPECT_LT(fit->serial_fraction, 0);
}

TEST(Fits, TooLittleDeterminesNothing) {
  EXPECT_FALSE(fit_amdahl({1, 2}, {2, 1}));
  EXPECT_FALSE(fit_amdahl({2, 2, 2}, {1, 1.1, 0.9}));
  EXPECT_FALSE(fit_alpha_beta({2, 2}, {8, 800}, {1e-6, 1e-5}));
  EXPECT_FALSE(fit_alpha_beta({1, 2, 3}, {10, 20, 30}, {1, 2, 3})) << "rounds and bytes in step";
  EXPECT_FALSE(fit_alpha_beta({1, 2, 3}, {0, 0, 0}, {1, 2, 3}));
}

TEST(Fits, AlphaBetaSeparatesLatencyFromBandwidth) {
  const std::vector<double> rounds{2, 6, 2, 6, 14}, bytes{8, 12, 1e8, 1.5e8, 1.75e8};
  std::vector<double> seconds;
  for (std::size_t i = 0; i < rounds.size(); ++i)
    seconds.push_back(2e-6 * rounds[i] + 3e-10 * bytes[i]);
  const auto fit = fit_alpha_beta(rounds, bytes, seconds);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->alpha, 2e-6, 1e-12);
  EXPECT_NEAR(fit->beta, 3e-10, 1e-16);
}

// One percent on the large message must not drown the latency.
TEST(Fits, AlphaBetaWeighsRelativeErrors) {
  const auto fit = fit_alpha_beta({2, 2, 2}, {8, 8, 1e9}, {4e-6, 4e-6, 0.3 * 1.01});
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->alpha, 2e-6, 1e-8);
  EXPECT_NEAR(fit->beta, 3.03e-10, 1e-12);
}

}  // namespace
}  // namespace tessera::bench
