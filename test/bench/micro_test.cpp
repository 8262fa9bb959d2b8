// SPDX-License-Identifier: Apache-2.0
#include "micro.hpp"

#include <sstream>

#include <gtest/gtest.h>

namespace tessera::bench {
namespace {

/// Runs what was registered; the report of this rank.
std::string run() {
  std::ostringstream text;
  benchmark::JSONReporter reporter;
  reporter.SetOutputStream(&text);
  reporter.SetErrorStream(&text);
  benchmark::RunSpecifiedBenchmarks(&reporter, "all");
  benchmark::ClearRegisteredBenchmarks();
  return text.str();
}

class Micro : public ::testing::Test {
 protected:
  Communicator world = Communicator::world();
  MicroContext context{{.iterations = 4}, Mesh(world, MeshShape({{"data", world.size()}}))};
};

TEST_F(Micro, AllRanksRepeatAsOften) {
  Size calls = 0;
  context.add("counted", world, [&] { ++calls; }, {{"flops_per_second", 100}});
  const std::string report = run();
  EXPECT_EQ(calls, 3 + 4) << "warm-up and iterations";
  EXPECT_NE(report.find("\"iterations\": 4"), std::string::npos) << report;
  EXPECT_NE(report.find("flops_per_second"), std::string::npos) << report;
  EXPECT_EQ(context.errors(), 0);
}

// A wrong element on one rank is an error on all of them, which go on together.
TEST_F(Micro, WhatIsWrongAnywhereIsAnErrorEverywhere) {
  const bool is_last = world.rank() == world.size() - 1;
  context.add_checked(
      "wrong", world, [] {}, [=] { return is_last ? Size{7} : Size{0}; }, {});
  const std::string report = run();
  EXPECT_EQ(context.errors(), 1);
  EXPECT_NE(report.find("7 elements are wrong"), std::string::npos) << report;
}

TEST_F(Micro, TimesAreThoseOfTheSlowestRank) {
  const double mine = world.rank() == 0 ? 2.0 : 0.5;
  context.add_timed("slow", world,
                    [=](Size n) { return std::vector<double>(static_cast<std::size_t>(n), mine); });
  EXPECT_NE(run().find("\"median_s\": 2.0"), std::string::npos);
}

}  // namespace
}  // namespace tessera::bench
