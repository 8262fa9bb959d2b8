// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/optim/loss_scale.hpp>

namespace tessera {
namespace {

TEST(LossScale, HalvesOnOverflowAndDoublesAfterTwoThousandGoodSteps) {
  LossScale scale(true);
  EXPECT_EQ(scale.value(), 32768);
  scale.step(true);
  EXPECT_EQ(scale.value(), 16384);
  for (int step = 0; step < 1999; ++step) scale.step(false);
  EXPECT_EQ(scale.value(), 16384);
  scale.step(true);  // the good ones before count no more
  for (int step = 0; step < 1999; ++step) scale.step(false);
  EXPECT_EQ(scale.value(), 8192);
  scale.step(false);
  EXPECT_EQ(scale.value(), 16384);
  EXPECT_EQ(scale.skipped_steps(), 2);
}

TEST(LossScale, StaysBetweenOneAndTwoToTheTwentyFour) {
  LossScale scale(true);
  for (int step = 0; step < 15; ++step) {
    EXPECT_TRUE(scale.can_shrink());
    scale.step(true);
  }
  EXPECT_EQ(scale.value(), 1);
  EXPECT_FALSE(scale.can_shrink());
  scale.step(true);
  EXPECT_EQ(scale.value(), 1);
  for (int step = 0; step < 30 * 2000; ++step) scale.step(false);
  EXPECT_EQ(scale.value(), 16777216);
}

TEST(LossScale, IsOneWhereNothingIsScaled) {
  LossScale scale;
  scale.step(true);
  EXPECT_EQ(scale.value(), 1);
  EXPECT_EQ(scale.skipped_steps(), 0);
  EXPECT_FALSE(scale.can_shrink());
}

}  // namespace
}  // namespace tessera
