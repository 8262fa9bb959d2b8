// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/optim/schedule.hpp>

namespace tessera {
namespace {

using enum ScheduleKind;
constexpr double base = 0.2;

struct ScheduleCase {
  ScheduleConfig config;
  std::vector<std::pair<Size, double>> factors;  ///< of the base rate, by step
};

TEST(Schedule, FollowsItsFormula) {
  const double eighth = 0.5 + std::sqrt(0.125);  // (1 + cos(pi / 4)) / 2
  const std::vector<ScheduleCase> cases{
      {{}, {{0, 1}, {1, 1}, {1000000, 1}}},
      {{.kind = exponential, .steps = 10, .rate = 0.5}, {{0, 1}, {5, std::sqrt(0.5)}, {30, 0.125}}},
      {{.kind = step, .steps = 10, .rate = 0.5}, {{9, 1}, {10, 0.5}, {39, 0.125}}},
      {{.kind = cosine, .steps = 8, .end_factor = 0.1},
       {{0, 1}, {2, 0.9 * eighth + 0.1}, {4, 0.55}, {8, 0.1}, {80, 0.1}}},
      {{.kind = linear, .steps = 8, .end_factor = 0.5}, {{0, 1}, {4, 0.75}, {8, 0.5}, {9, 0.5}}},
      {{.kind = warmup_cosine,
        .steps = 14,
        .end_factor = 0.2,
        .warmup_steps = 4,
        .start_factor = 0.1},
       {{0, 0.1}, {2, 0.55}, {4, 1}, {9, 0.6}, {14, 0.2}, {99, 0.2}}}};
  for (const ScheduleCase& one : cases)
    for (const auto& [at, factor] : one.factors)
      EXPECT_NEAR(learning_rate_at(one.config, base, at), base * factor, 1e-15)
          << name_of(one.config.kind) << ", step " << at;
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
