// SPDX-License-Identifier: Apache-2.0
#include "run/fault.hpp"

#include <Kokkos_Core.hpp>
#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/base/timer.hpp>

#include "measure/slow_rank.hpp"

namespace tessera::bench {
namespace {

TEST(Faults, AreNamedByWhatAndWhere) {
  EXPECT_EQ(parse_fault("throw@12").rank, 12);
  EXPECT_EQ(parse_fault("stall@0").kind, Fault::Kind::stalls);
  const Fault slow = parse_fault("slow@3:12.5%");
  EXPECT_EQ(slow.kind, Fault::Kind::slows);
  EXPECT_EQ(slow.rank, 3);
  EXPECT_DOUBLE_EQ(slow.share, 0.125);
  for (const char* wrong :
       {"", "throw", "throw@", "throw@x", "throw@-1", "explode@1", "throw@1x", "slow@1",
        "slow@1:10", "slow@1:-1%", "slow@1:nan%", "slow@1:inf%", "throw@1:10%"})
    EXPECT_THROW(parse_fault(wrong), Error) << wrong;
}

void spin(double seconds) {
  const Timer timer;
  while (timer.seconds() < seconds) {
  }
}

/// Returns the seconds of a step that computes for 10 ms and communicates for 20 ms.
double seconds_of_step() {
  const Timer timer;
  Kokkos::Profiling::pushRegion("tessera::step");
  Kokkos::Profiling::pushRegion("tessera::forward");
  spin(0.01);
  Kokkos::Profiling::popRegion();
  Kokkos::Profiling::pushRegion("tessera::all_reduce(data)");
  spin(0.02);
  Kokkos::Profiling::popRegion();
  Kokkos::Profiling::popRegion();
  return timer.seconds();
}

TEST(Faults, ASlowRankAddsAShareOfItsComputation) {
  const auto before = Kokkos::Tools::Experimental::get_callbacks();
  {
    const SlowRank fault(5);
    EXPECT_GE(seconds_of_step(), 0.03 + 5 * 0.01);
  }
  EXPECT_EQ(Kokkos::Tools::Experimental::get_callbacks().push_region, before.push_region);
}

}  // namespace
}  // namespace tessera::bench
