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

/// Runs the registered benchmarks and returns this rank's report.
std::string run() {
  std::ostringstream text;
  benchmark::JSONReporter reporter;
  reporter.SetOutputStream(&text);
  reporter.SetErrorStream(&text);
  benchmark::RunSpecifiedBenchmarks(&reporter, "all");
  return text.str();
}

/// Returns a mesh with two axes, if the number of ranks is even, so that a group has not all ranks.
MeshShape some_mesh(Size ranks) {
  if (ranks % 2 == 0) return MeshShape({{"data", ranks / 2}, {"model", 2}});
  return MeshShape({{"data", ranks}});
}

class Micro : public ::testing::Test {
 protected:
  Communicator world = Communicator::world();
  MicroContext context{{.iterations = 4}, Mesh(world, some_mesh(world.size()))};
};

TEST_F(Micro, RanksRepeatAsOften) {
  Size calls = 0;
  context.add("counted", [&] {
    return MicroCase{
        .work = [&] { ++calls; }, .rates = {{"flops_per_second", 100}}, .label = "by hand"};
  });
  EXPECT_EQ(calls, 0);
  const std::string report = run();
  EXPECT_EQ(calls, 3 + 4) << "warm-up and iterations";
  for (const char* part : {"\"iterations\": 4", "flops_per_second", "\"label\": \"by hand\""})
    EXPECT_NE(report.find(part), std::string::npos) << report;
  EXPECT_EQ(context.errors(), 0);
}

/// Returns the number of a counter in a report.
double counter(const std::string& report, const std::string& name) {
  const std::string key = "\"" + name + "\": ";
  const std::size_t at = report.find(key);
  return at == std::string::npos ? -1 : std::stod(report.substr(at + key.size()));
}

// Products of 1 kFLOP take 10 ms here, and a sweep through 1 kB as well: far more than they need.
TEST_F(Micro, KernelsAreComparedWithTheRoofline) {
  for (const KernelWork& kernel : {KernelWork{1e3, 1}, KernelWork{.bytes = 1e3}}) {
    context.add("kernel", [=] {
      return MicroCase{[] { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }, kernel};
    });
    const std::string report = run();
    benchmark::ClearRegisteredBenchmarks();
    EXPECT_GT(counter(report, "roofline"), 0) << report;
    EXPECT_LT(counter(report, "roofline"), 0.1) << report;
    EXPECT_NEAR(counter(report, "bytes_per_second") * counter(report, "median_s"), kernel.bytes,
                1e-3 * kernel.bytes);
    EXPECT_EQ(counter(report, "flops_per_second") > 0, kernel.flops > 0) << report;
  }
}

// All ranks must agree on the error, or they would wait for each other.
TEST_F(Micro, AWrongElementOnOneRankIsAnErrorOnAll) {
  const bool is_last = world.rank() == world.size() - 1;
  context.add("wrong", [=] {
    return MicroCase{.work = [] {}, .count_wrong = [=] { return is_last ? Size{7} : Size{0}; }};
  });
  const std::string report = run();
  EXPECT_EQ(context.errors(), 1);
  EXPECT_NE(report.find("7 elements are wrong"), std::string::npos) << report;
}

TEST_F(Micro, TakesTheTimeOfTheSlowestRank) {
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

TEST_F(Micro, AllocatesMemoryForOneBenchmarkAtATime) {
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

TEST(MicroContext, RemovesItsBenchmarksAfterAnException) {
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
