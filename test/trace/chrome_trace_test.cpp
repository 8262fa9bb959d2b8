// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include <tessera/base/types.hpp>
#include <tessera/trace/chrome_trace.hpp>

namespace tessera {
namespace {

using Json = nlohmann::json;

std::vector<Json> events_of(const Json& trace, Size rank, const std::string& name) {
  std::vector<Json> found;
  for (const Json& event : trace.at("traceEvents"))
    if (event.at("tid") == rank + 1 && event.at("name") == name) found.push_back(event);
  return found;
}

TEST(ChromeTrace, HasARowPerRankWithRegionsCallsAndWaiting) {
  RankTrace late, early;
  late.regions = {{"tessera::forward", 0, 4}, {"tessera::step", 0, 6}};
  late.calls = {{"data", Operation::all_reduce, 1, 4}};
  early.regions = {{"tessera::forward", 0, 2}};
  early.calls = {{"data", Operation::all_reduce, 3, 2}};
  early.calls[0].waiting = 2;
  const Json trace = chrome_trace({late, early});

  EXPECT_EQ(events_of(trace, 1, "thread_name").at(0)["args"]["name"], "rank 1");
  const Json forward = events_of(trace, 0, "forward").at(0);
  EXPECT_EQ(forward["ph"], "X");
  EXPECT_DOUBLE_EQ(forward["ts"].get<double>(), 0);
  EXPECT_DOUBLE_EQ(forward["dur"].get<double>(), 4e6);
  EXPECT_EQ(events_of(trace, 0, "step").size(), 1u);

  // The early rank waits for 2 s; the call itself takes 1 s on both.
  EXPECT_TRUE(events_of(trace, 0, "idle").empty());
  const Json idle = events_of(trace, 1, "idle").at(0);
  EXPECT_DOUBLE_EQ(idle["ts"].get<double>(), 2e6);
  EXPECT_DOUBLE_EQ(idle["dur"].get<double>(), 2e6);
  for (const Size rank : {0, 1}) {
    const Json call = events_of(trace, rank, "all_reduce").at(0);
    EXPECT_DOUBLE_EQ(call["ts"].get<double>(), 4e6);
    EXPECT_DOUBLE_EQ(call["dur"].get<double>(), 1e6);
    EXPECT_EQ(call["args"]["axis"], "data");
  }
}

TEST(ChromeTrace, CountsPlannedAndMeasuredMemory) {
  RankTrace rank;
  rank.memory = {{.begin = 1, .action = 1, .measured = 0},
                 {.begin = 2, .action = 0, .measured = 8}};
  rank.add_memory(
      100, {{"memory", {{"total", 100}}}, {"actions", {{{"in_use", 60}}, {{"in_use", 70}}}}});
  const std::vector<Json> memory = events_of(chrome_trace({rank}), 0, "memory of rank 0");
  ASSERT_EQ(memory.size(), 2u);
  EXPECT_EQ(memory[0]["ph"], "C");
  EXPECT_EQ(memory[0]["ts"], 1e6);
  EXPECT_EQ(memory[0]["args"], Json({{"planned", 100}, {"in use", 70}, {"measured", 100}}));
  EXPECT_EQ(memory[1]["args"], Json({{"planned", 100}, {"in use", 60}, {"measured", 108}}));
}

// A viewer that rounds to nanoseconds, and reads slices that begin together from the outside in,
// must not see a slice that ends after the one around it.
TEST(ChromeTrace, ASliceComesBeforeThoseInsideAndTimesAreWholeNanoseconds) {
  RankTrace rank;
  rank.regions = {{"tessera::gemm", 0.1 / 3, 1e-9}, {"tessera::forward", 0.1 / 3, 2e-6 / 3}};
  rank.calls = {{"data", Operation::all_reduce, 2e-6 / 3, 0.1 / 3}};
  const Json events = chrome_trace({rank}).at("traceEvents");
  std::vector<std::string> names;
  for (const Json& event : events) names.push_back(event.at("name"));
  EXPECT_EQ(names, (std::vector<std::string>{"thread_name", "forward", "all_reduce", "gemm"}));
  for (const char* time : {"ts", "dur"})
    for (std::size_t i = 1; i < events.size(); ++i) {
      const double nanoseconds = 1000 * events[i].at(time).get<double>();
      EXPECT_EQ(nanoseconds, std::round(nanoseconds)) << events[i];
    }
}

}  // namespace
}  // namespace tessera
