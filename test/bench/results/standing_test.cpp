// SPDX-License-Identifier: Apache-2.0
// Which case is called the fastest, and which cases tie with it.
#include <gtest/gtest.h>

#include "bench/results/results_support.hpp"
#include "results/summary.hpp"

namespace tessera::bench {
namespace {

/// Two cases of the same work, of which the second takes twice as long.
Results two_cases() {
  return fake_results({{.ranks = 2, .seconds = 1}, {.strategy = "fsdp", .ranks = 2, .seconds = 2}});
}

std::string standing_of_slower(const Results& results) {
  const Summary summary = summarize_study(results);
  EXPECT_EQ(summary.machine.timing_reliable.value_or(true), true) << summary.machine.problem;
  EXPECT_EQ(summary.cases[0].standing, "fastest");
  return summary.cases[1].standing;
}

TEST(Standing, ACaseIsSlowerIfTheIntervalSaysSo) { EXPECT_EQ(standing_of_slower(two_cases()), ""); }

TEST(Standing, CasesWithoutACommonLaunchTie) {
  Results results = two_cases();
  for (Round& round : results.cases[1].rounds) round.launch = "two";
  EXPECT_EQ(standing_of_slower(results), "tied");
}

TEST(Standing, CasesWithFewCommonRoundsTie) {
  Results results = two_cases();
  for (std::size_t k = 5; k < 10; ++k) results.cases[1].rounds[k].launch = "two";
  EXPECT_EQ(standing_of_slower(results), "tied");
}

TEST(Standing, SimulatedCasesTieIfTheyAreEqual) {
  Results results = two_cases();
  for (CaseResult& result : results.cases) result.simulated = "a cluster";
  EXPECT_EQ(standing_of_slower(results), "");
  results.cases[1].samples_per_second = results.cases[0].samples_per_second;
  EXPECT_EQ(standing_of_slower(results), "tied");
}

}  // namespace
}  // namespace tessera::bench
