// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include <tessera/comm/share_json.hpp>

#include "measure/machine_speed.hpp"

namespace tessera::bench {
namespace {

TEST(GemmPeak, IsPositiveAndTheSameOnEveryRank) {
  const Communicator world = Communicator::world();
  const double peak = gemm_peak(world, {DType::float64}, 32, 3);
  EXPECT_TRUE(std::isfinite(peak) && peak > 0) << peak;
  for (const nlohmann::json& one : gather_json(world, peak)) EXPECT_EQ(one, peak);
}

}  // namespace
}  // namespace tessera::bench
