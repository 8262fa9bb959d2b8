// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/base/error.hpp>

#include "bench/results/results_support.hpp"
#include "results/summary.hpp"
#include "temporary_directory.hpp"

namespace tessera::bench {
namespace {

TEST(Compare, MatchesCasesByTheirFactors) {
  const test::TemporaryDirectory work;
  const std::string before = (work.path() / "before").string(),
                    after = (work.path() / "after").string();
  write_results_of_launch(
      before, fake_results({{.ranks = 1, .seconds = 8}, {.ranks = 2, .seconds = 5}, {.ranks = 8}}));
  Results changed = fake_results(
      {{.ranks = 1, .seconds = 2}, {.ranks = 2, .status = "failed"}, {.ranks = 4, .seconds = 3}});
  write_results_of_launch(after, changed);
  const Comparison comparison = compare_results(before, after);
  const std::string text = comparison_text(comparison);
  EXPECT_NE(text.find("8.02 s    2.00 s   -75.0%    +3.0%  better"), std::string::npos) << text;
  EXPECT_NE(text.find("ok -> failed"), std::string::npos) << text;
  EXPECT_NE(text.find("only after"), std::string::npos) << text;
  EXPECT_NE(text.find("only before"), std::string::npos) << text;
  EXPECT_NE(text.find("1 better, 1 ok -> failed"), std::string::npos) << text;
  EXPECT_EQ(comparison.counts,
            (std::map<std::string, Size>{
                {"better", 1}, {"ok -> failed", 1}, {"only after", 1}, {"only before", 1}}));
  EXPECT_EQ(comparison.compared, 1);
  const nlohmann::json document = comparison;
  const nlohmann::json& first = document.at("cases")[0];
  EXPECT_EQ(first.at("label"), changed.cases[0].label);
  EXPECT_EQ(first.at("before_step_seconds"), 8.016);
  EXPECT_EQ(first.at("after_step_seconds"), 2.004);
  EXPECT_NEAR(first.at("ratio").get<double>(), 0.25, 1e-12);
  EXPECT_EQ(first.at("verdict"), "better");
  const nlohmann::json& broken = document.at("cases")[1];
  EXPECT_EQ(broken.at("verdict"), "ok -> failed");
  EXPECT_TRUE(broken.at("ratio").is_null());
  EXPECT_TRUE(broken.at("after_step_seconds").is_null());
}

/// Returns results whose rounds take `steps` times longer, and whose fixed kernels take `machine`
/// times longer.
Results slower(Results results, double steps, double machine) {
  for (CaseResult& result : results.cases)
    for (Round& round : result.rounds) {
      round.seconds *= steps;
      round.machine.product_seconds *= machine;
      round.machine.memory_seconds *= machine;
    }
  return results;
}

Comparison comparison_of(const Results& before, const Results& after) {
  const test::TemporaryDirectory work;
  write_results_of_launch((work.path() / "a").string(), before);
  write_results_of_launch((work.path() / "b").string(), after);
  return compare_results((work.path() / "a").string(), (work.path() / "b").string());
}

std::string compare(const Results& before, const Results& after) {
  return comparison_text(comparison_of(before, after));
}

TEST(Compare, SaysWhetherSomethingBecameWorse) {
  const auto regressed = [](const Results& before, const Results& after) {
    return comparison_of(before, after).regressed;
  };
  const Results results = fake_results({{.ranks = 1, .seconds = 8}, {.ranks = 2, .seconds = 5}});
  EXPECT_FALSE(regressed(results, results));
  EXPECT_FALSE(regressed(results, slower(results, 0.9, 1)));
  EXPECT_TRUE(regressed(results, slower(results, 1.1, 1)));
  Results one = results;
  one.cases[1] = slower(results, 1.1, 1).cases[1];
  EXPECT_TRUE(regressed(results, one));
  for (const auto& [status, is_worse] : {std::pair{"failed", true},
                                         {"invalid", true},
                                         {"oom", true},
                                         {"timeout", true},
                                         {"skipped", false},
                                         {"pending", false}}) {
    const Results ended =
        fake_results({{.ranks = 1, .status = status}, {.ranks = 2, .seconds = 5}});
    EXPECT_EQ(regressed(results, ended), is_worse) << status;
    EXPECT_FALSE(regressed(ended, ended)) << status;
    EXPECT_FALSE(regressed(ended, results)) << status;
  }
}

TEST(Compare, NeedsUnlikelyRoundsAndAnEffect) {
  const Results results = fake_results({{.ranks = 1, .seconds = 8}, {.ranks = 2, .seconds = 5}});
  EXPECT_NE(compare(results, results).find("2 indistinguishable"), std::string::npos);
  EXPECT_NE(compare(results, slower(results, 1.02, 1)).find("2 indistinguishable"),
            std::string::npos)
      << "2 %";
  EXPECT_NE(compare(results, slower(results, 1.04, 1)).find("2 worse"), std::string::npos);
  EXPECT_NE(compare(results, slower(results, 0.96, 1)).find("2 better"), std::string::npos);
}

TEST(Compare, IsCorrectedForTheMachine) {
  const Results results = fake_results({{.ranks = 1, .seconds = 8}, {.ranks = 2, .seconds = 5}});
  const std::string text = compare(results, slower(results, 1.35, 1.35));
  EXPECT_NE(text.find("2 indistinguishable"), std::string::npos) << text;
  EXPECT_NE(text.find("machine was 35.0% slower after"), std::string::npos) << text;
  EXPECT_NE(compare(results, slower(results, 1, 1.35)).find("2 better"), std::string::npos);
}

TEST(Compare, ASimulatedStudyIsComparedWithASimulatedOneOnly) {
  const Results measured = fake_results({{.ranks = 2, .seconds = 5}});
  Results simulated = measured;
  CaseResult& result = simulated.cases[0];
  result.simulated = "a cluster";
  result.rounds.resize(1);
  const Comparison comparison = comparison_of(measured, simulated);
  EXPECT_EQ(comparison.cases[0].verdict, "measured -> simulated");
  EXPECT_FALSE(comparison.cases[0].ratio || comparison.machine_ratio || comparison.regressed);
  EXPECT_EQ(comparison_of(simulated, measured).cases[0].verdict, "simulated -> measured");
  const Comparison both = comparison_of(simulated, slower(simulated, 2, 1));
  EXPECT_DOUBLE_EQ(both.cases[0].ratio.value(), 2);
  EXPECT_FALSE(both.machine_ratio);
}

TEST(Compare, FewRoundsOrManyCasesSayHowManyTheyNeed) {
  Results few = fake_results({{.ranks = 1, .seconds = 8}});
  for (const std::size_t rounds : {1, 3}) {
    few.cases[0].rounds.resize(rounds, few.cases[0].rounds[0]);
    const Comparison comparison = comparison_of(few, slower(few, 2, 1));
    const ComparedCase& one = comparison.cases[0];
    EXPECT_EQ(one.verdict, "too few rounds");
    EXPECT_EQ(one.reason, std::to_string(rounds) + " before, " + std::to_string(rounds) +
                              " after; 4 of each are needed for 1 case");
    EXPECT_DOUBLE_EQ(one.ratio.value(), 2);
    EXPECT_EQ(comparison.compared, 0);
    EXPECT_FALSE(comparison.regressed);
  }
  few.cases[0].rounds.resize(4, few.cases[0].rounds[0]);
  EXPECT_EQ(comparison_of(few, slower(few, 2, 1)).cases[0].verdict, "worse");
}

TEST(Compare, AChangeInTheScatterSaysSo) {
  Results noisy = fake_results({{.ranks = 1, .seconds = 8}});
  for (std::size_t k = 0; k < 10; ++k) noisy.cases[0].rounds[k].seconds *= k < 5 ? 1 : 3;
  Results after = slower(noisy, 1.3, 1);
  const ComparedCase one = comparison_of(noisy, after).cases[0];
  EXPECT_EQ(one.verdict, "indistinguishable");
  EXPECT_EQ(one.reason.find("changes below +"), 0u) << one.reason;
  EXPECT_NE(compare(noisy, after).find("+30.0%"), std::string::npos);
  EXPECT_NE(compare(noisy, after).find("indistinguishable: changes below +"), std::string::npos);
  EXPECT_EQ(comparison_of(noisy, noisy).cases[0].reason, "");
}

TEST(Compare, ADirectoryWithoutAStudyIsAnError) {
  EXPECT_THROW(compare_results("/nonexistent/a", "/nonexistent/b"), Error);
}

}  // namespace
}  // namespace tessera::bench
