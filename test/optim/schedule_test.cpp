// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include <tessera/optim/schedule.hpp>

namespace tessera {
namespace {

using enum ScheduleKind;
constexpr double base = 0.2;

TEST(Schedule, ConstantNeverMoves) {
  for (Size s : {0, 1, 1000000}) EXPECT_EQ(learning_rate_at({}, base, s), base);
}

TEST(Schedule, ExponentialDecaysByTheRateOverTheSteps) {
  const ScheduleConfig c{.kind = exponential, .steps = 10, .rate = 0.5};
  EXPECT_DOUBLE_EQ(learning_rate_at(c, base, 0), base);
  EXPECT_DOUBLE_EQ(learning_rate_at(c, base, 5), base * std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(learning_rate_at(c, base, 30), base / 8);
}

TEST(Schedule, StepDecaysInStairs) {
  const ScheduleConfig c{.kind = step, .steps = 10, .rate = 0.5};
  EXPECT_DOUBLE_EQ(learning_rate_at(c, base, 9), base);
  EXPECT_DOUBLE_EQ(learning_rate_at(c, base, 10), base / 2);
  EXPECT_DOUBLE_EQ(learning_rate_at(c, base, 39), base / 8);
}

TEST(Schedule, CosineEndsAtItsFactorAndStaysThere) {
  const ScheduleConfig c{.kind = cosine, .steps = 8, .end_factor = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate_at(c, base, 0), base);
  EXPECT_DOUBLE_EQ(learning_rate_at(c, base, 4), base * (0.9 * 0.5 + 0.1));
  EXPECT_NEAR(learning_rate_at(c, base, 2), base * (0.9 * (0.5 + std::sqrt(0.125)) + 0.1), 1e-15);
  EXPECT_NEAR(learning_rate_at(c, base, 8), base * 0.1, 1e-15);
  EXPECT_NEAR(learning_rate_at(c, base, 80), base * 0.1, 1e-15);
}

TEST(Schedule, LinearEndsAtItsFactorAndStaysThere) {
  const ScheduleConfig c{.kind = linear, .steps = 8, .end_factor = 0.5};
  EXPECT_DOUBLE_EQ(learning_rate_at(c, base, 0), base);
  EXPECT_DOUBLE_EQ(learning_rate_at(c, base, 4), base * 0.75);
  EXPECT_DOUBLE_EQ(learning_rate_at(c, base, 8), base * 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_at(c, base, 9), base * 0.5);
}

TEST(Schedule, WarmUpRisesToTheBaseAndTheCosineTakesTheRest) {
  const ScheduleConfig c{.kind = warmup_cosine,
                         .steps = 14,
                         .end_factor = 0.2,
                         .warmup_steps = 4,
                         .start_factor = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate_at(c, base, 0), base * 0.1);
  EXPECT_DOUBLE_EQ(learning_rate_at(c, base, 2), base * 0.55);
  EXPECT_DOUBLE_EQ(learning_rate_at(c, base, 4), base);
  EXPECT_DOUBLE_EQ(learning_rate_at(c, base, 9), base * 0.6);
  EXPECT_NEAR(learning_rate_at(c, base, 14), base * 0.2, 1e-15);
  EXPECT_NEAR(learning_rate_at(c, base, 99), base * 0.2, 1e-15);

  ScheduleConfig other = c;
  other.kind = cosine;
  for (Size s = 0; s < 20; ++s)
    EXPECT_EQ(learning_rate_at(other, base, s), learning_rate_at(c, base, s)) << s;
}

TEST(Schedule, WsdWarmsUpStaysAndFallsLinearlyInItsLastSteps) {
  const ScheduleConfig c{.kind = wsd,
                         .steps = 20,
                         .end_factor = 0.1,
                         .decay_steps = 5,
                         .warmup_steps = 4,
                         .start_factor = 0.2};
  for (Size s = 0; s < 25; ++s) {
    const double t = static_cast<double>(s);
    const double factor = s < 4    ? 0.2 + 0.8 * t / 4
                          : s < 15 ? 1
                          : s < 20 ? 1 - 0.9 * (t - 15) / 5
                                   : 0.1;
    EXPECT_NEAR(learning_rate_at(c, base, s), base * factor, 1e-15) << s;
  }
}

TEST(Schedule, AWarmUpDelaysEveryKind) {
  // n = 10 steps after the warm-up: kinds with an end count the warm-up among their steps.
  for (const ScheduleKind kind : {constant, exponential, cosine, linear, step, wsd}) {
    ScheduleConfig plain{.kind = kind};
    if (kind != constant) plain.steps = 10;
    if (kind == exponential || kind == step) plain.rate = 0.5;
    if (kind == wsd) plain.decay_steps = 4;
    ScheduleConfig warm = plain;
    warm.warmup_steps = 5;
    if (has_end(kind)) warm.steps += 5;
    SCOPED_TRACE(name_of(kind));
    for (Size s = 0; s < 5; ++s)
      EXPECT_DOUBLE_EQ(learning_rate_at(warm, base, s), base * static_cast<double>(s) / 5);
    for (Size s = 0; s < 25; ++s)
      EXPECT_EQ(learning_rate_at(warm, base, s + 5), learning_rate_at(plain, base, s)) << s;
  }
}

}  // namespace
}  // namespace tessera
