// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/base/error.hpp>

#include "cli/bench_command_line.hpp"

namespace tessera::bench {
namespace {

TEST(Faults, HaveAKindARankAndAShare) {
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

}  // namespace
}  // namespace tessera::bench
