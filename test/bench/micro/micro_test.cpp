// SPDX-License-Identifier: Apache-2.0
#include "micro/micro.hpp"

#include <chrono>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>

namespace tessera::bench {
namespace {

/// Runs what was registered; the report of this rank.
std::string run() {
  std::ostringstream text;
  benchmark::JSONReporter reporter;
  reporter.SetOutputStream(&text);
  reporter.SetErrorStream(&text);
  benchmark::RunSpecifiedBenchmarks(&reporter, "all");
  return text.str();
}

/// Half of the ranks along each axis, if there are enough: groups are then not all of them.
MeshShape some_mesh(Size ranks) {
  if (ranks % 2 == 0) return MeshShape({{"data", ranks / 2}, {"model", 2}});
  return MeshShape({{"data", ranks}});
}

class Micro : public ::testing::Test {
 protected:
  Communicator world = Communicator::world();
  MicroContext context{{.iterations = 4}, Mesh(world, some_mesh(world.size()))};
};

TEST_F(Micro, AllRanksRepeatAsOften) {
  Size calls = 0;
  context.add("counted", [&] { return MicroCase{[&] { ++calls; }, {{"flops_per_second", 100}}}; });
  EXPECT_EQ(calls, 0);
  const std::string report = run();
  EXPECT_EQ(calls, 3 + 4) << "warm-up and iterations";
  EXPECT_NE(report.find("\"iterations\": 4"), std::string::npos) << report;
  EXPECT_NE(report.find("flops_per_second"), std::string::npos) << report;
  EXPECT_EQ(context.errors(), 0);
}

TEST_F(Micro, WhatDoesTheWorkIsTheLabel) {
  context.add("labelled", [] { return MicroCase{.work = [] {}, .label = "by hand"}; });
  const std::string report = run();
  EXPECT_NE(report.find("\"label\": \"by hand\""), std::string::npos) << report;
}

// A wrong element on one rank is an error on all of them, which go on together.
TEST_F(Micro, WhatIsWrongAnywhereIsAnErrorEverywhere) {
  const bool is_last = world.rank() == world.size() - 1;
  context.add("wrong", [=] {
    return MicroCase{[] {}, {}, [=] { return is_last ? Size{7} : Size{0}; }};
  });
  const std::string report = run();
  EXPECT_EQ(context.errors(), 1);
  EXPECT_NE(report.find("7 elements are wrong"), std::string::npos) << report;
}

TEST_F(Micro, TimesAreThoseOfTheSlowestRank) {
  // The last rank shares no axis with rank 0 if the mesh has two.
  const bool is_last = world.rank() == world.size() - 1;
  context.add("slow", [=] {
    return MicroCase{[=] {
      if (is_last) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }};
  });
  const std::string report = run(), key = "\"min_s\": ";
  const std::size_t at = report.find(key);
  ASSERT_NE(at, std::string::npos) << report;
  EXPECT_GE(std::stod(report.substr(at + key.size())), 0.05) << report;
}

TEST_F(Micro, MemoryIsThereForOneBenchmarkAtATime) {
  auto held = std::make_shared<int>(0);
  const std::weak_ptr<int> alive = held;
  Size made = 0;
  context.add("first", [&] {
    ++made;
    return MicroCase{[here = std::exchange(held, nullptr)] { ++*here; }};
  });
  bool is_gone = false;
  context.add("second", [&] {
    is_gone = alive.expired();
    return MicroCase{[] {}};
  });
  EXPECT_EQ(made, 0) << "at registration";
  run();
  EXPECT_EQ(made, 1);
  EXPECT_TRUE(is_gone);
}

TEST(MicroContext, ForgetsItsBenchmarksWhenSomethingThrows) {
  const Communicator world = Communicator::world();
  const Mesh mesh(world, some_mesh(world.size()));
  const auto held = std::make_shared<int>(0);
  EXPECT_THROW(
      {
        MicroContext context({.iterations = 1}, mesh);
        context.add("held", [held] { return MicroCase{[held] { ++*held; }}; });
        throw Error(ExitCode::usage, "in between");
      },
      Error);
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace tessera::bench
