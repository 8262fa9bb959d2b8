// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include "measure/machine_speed.hpp"

namespace tessera::bench {
namespace {

TEST(RateBeyond, IsThatOfTheRestOfTheTime) { EXPECT_EQ(rate_beyond(12, 5, 1), 3); }

TEST(RateBeyond, IsPositiveWhereNoiseMadeTheOverheadLonger) {
  for (const double overhead : {4.0, 5.0, 50.0}) EXPECT_EQ(rate_beyond(12, 5, overhead), 4.8);
}

TEST(TypicalMachine, HasTheMedianOfEachNumber) {
  std::vector<Machine> measured(3);
  for (std::size_t i = 0; i < 3; ++i) {
    measured[i].flops_per_second["float32"] = std::vector{5.0, 1.0, 3.0}[i];
    measured[i].side_efficiency[64] = std::vector{0.2, 0.8, 0.4}[i];
    measured[i].network = {{"node", 2, std::vector{9.0, 7.0, 6.0}[i], 1.0}};
    measured[i].caches = {{1024, 10.0 + static_cast<double>(i)}};
  }
  measured[1].caches.push_back({4096, 2});  // most do not find it
  const Machine machine = typical_machine(measured);
  EXPECT_EQ(machine.flops_per_second.at("float32"), 3);
  EXPECT_EQ(machine.side_efficiency.at(64), 0.4);
  EXPECT_EQ(machine.network.at(0).latency_seconds, 7);
  ASSERT_EQ(machine.caches.size(), 1U);
  EXPECT_EQ(machine.caches[0].bytes_per_second, 11);
}

}  // namespace
}  // namespace tessera::bench
