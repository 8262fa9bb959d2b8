// SPDX-License-Identifier: Apache-2.0
#include "run/time_left.hpp"

#include <gtest/gtest.h>

namespace tessera::bench {
namespace {

TEST(TimeLeft, IsRightFromTheFirstRoundOn) {
  constexpr int cases = 5, rounds = 12;
  const auto first = [](int number) { return 20.0 + number; };
  TimeLeft estimate(cases, rounds);
  EXPECT_FALSE(estimate.seconds());
  double left = 0;
  for (int number = 0; number < cases; ++number) left += first(number) + (rounds - 1) * 1.0;
  for (int round = 0; round < rounds; ++round)
    for (int number = 0; number < cases; ++number) {
      const double seconds = round == 0 ? first(number) : 1.0;
      left -= seconds;
      estimate.add(number, {seconds, 1.0, round + 1 == rounds});
      // Cases that have not begun differ from those that have.
      EXPECT_NEAR(estimate.seconds().value(), left, round == 0 ? 0.1 * left : 1e-9)
          << "round " << round << ", case " << number;
    }
  EXPECT_EQ(estimate.seconds(), 0);
}

TEST(TimeLeft, ACaseThatEndsEarlyHasNoRoundsLeft) {
  TimeLeft estimate(2, 10);
  estimate.add(0, {30, 3, true});
  EXPECT_DOUBLE_EQ(estimate.seconds().value(), 30) << "the other may end as early";
  estimate.add(1, {10, 2, false});
  EXPECT_DOUBLE_EQ(estimate.seconds().value(), 18);
}

}  // namespace
}  // namespace tessera::bench
