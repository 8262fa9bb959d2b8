// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "measure/machine_speed.hpp"

namespace tessera::bench {
namespace {

TEST(RateBeyond, IsThatOfTheRestOfTheTime) { EXPECT_EQ(rate_beyond(12, 5, 1), 3); }

TEST(RateBeyond, IsPositiveWhereNoiseMadeTheOverheadLonger) {
  for (const double overhead : {4.0, 5.0, 50.0}) EXPECT_EQ(rate_beyond(12, 5, overhead), 4.8);
}

}  // namespace
}  // namespace tessera::bench
