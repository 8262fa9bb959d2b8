// SPDX-License-Identifier: Apache-2.0
#include "results/compare.hpp"

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>

#include "bench/results/results_support.hpp"
#include "bench/study/study_support.hpp"

namespace tessera::bench {
namespace {

void write(const std::string& path, const Results& results) {
  const ResultsDirectory directory(path);
  directory.prepare(results.study, false);
  for (const nlohmann::json& result : results.cases) directory.write_result(result);
}

TEST(Compare, MatchesCasesByTheirFactors) {
  const TemporaryDirectory work;
  const std::string before = (work.path() / "before").string(),
                    after = (work.path() / "after").string();
  write(before,
        fake_results({{.ranks = 1, .seconds = 8}, {.ranks = 2, .seconds = 5}, {.ranks = 8}}));
  Results changed = fake_results(
      {{.ranks = 1, .seconds = 2}, {.ranks = 2, .status = "failed"}, {.ranks = 4, .seconds = 3}});
  write(after, changed);
  const std::string text = compare_results(before, after);
  EXPECT_NE(text.find("8.00 s    2.00 s   -75.0%    +3.0%  better"), std::string::npos) << text;
  EXPECT_NE(text.find("ok -> failed"), std::string::npos) << text;
  EXPECT_NE(text.find("only after"), std::string::npos) << text;
  EXPECT_NE(text.find("only before"), std::string::npos) << text;
  EXPECT_NE(text.find("1 better, 1 ok -> failed"), std::string::npos) << text;
}

/// All rounds of all cases take so many times longer, and the machine's fixed kernels, too.
Results slower(Results results, double steps, double machine) {
  for (nlohmann::json& result : results.cases)
    for (nlohmann::json& round : result["rounds"]) {
      round["seconds"] = steps * round["seconds"].get<double>();
      for (const char* kernel : {"product_seconds", "memory_seconds"})
        round["machine"][kernel] = machine * round["machine"][kernel].get<double>();
    }
  return results;
}

std::string compare(const Results& before, const Results& after) {
  const TemporaryDirectory work;
  write((work.path() / "a").string(), before);
  write((work.path() / "b").string(), after);
  return compare_results((work.path() / "a").string(), (work.path() / "b").string());
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

TEST(Compare, FewRoundsOrManyCasesFindNothing) {
  Results few = fake_results({{.ranks = 1, .seconds = 8}});
  few.cases[0]["rounds"].erase(few.cases[0]["rounds"].begin() + 3, few.cases[0]["rounds"].end());
  const std::string text = compare(few, slower(few, 2, 1));
  EXPECT_NE(text.find("1 indistinguishable"), std::string::npos) << text;
  few.cases[0]["rounds"].erase(few.cases[0]["rounds"].begin() + 1, few.cases[0]["rounds"].end());
  EXPECT_NE(compare(few, slower(few, 2, 1)).find("1 too few rounds"), std::string::npos);
}

TEST(Compare, AStudyWithItself) {
  const TemporaryDirectory work;
  const std::string path = (work.path() / "study").string();
  write(path, fake_results({{.ranks = 1, .seconds = 8}, {.ranks = 2, .seconds = 5}}));
  const std::string text = compare_with_itself(path);
  EXPECT_NE(text.find("first half against second half: 2 indistinguishable"), std::string::npos)
      << text;
  EXPECT_NE(text.find("0.0% of 200 comparisons report a difference"), std::string::npos) << text;
}

TEST(Compare, OtherWorkIsNotCompared) {
  const TemporaryDirectory work;
  const std::string before = (work.path() / "before").string(),
                    after = (work.path() / "after").string();
  Results results = fake_results({{.ranks = 1, .seconds = 8}});
  write(before, results);
  results.cases[0]["config"]["training"]["batch_size"] = 65;
  write(after, results);
  EXPECT_NE(compare_results(before, after).find("different work"), std::string::npos);
}

TEST(Compare, WhatHoldsNoStudyIsAnError) {
  EXPECT_THROW(compare_results("/nonexistent/a", "/nonexistent/b"), Error);
}

}  // namespace
}  // namespace tessera::bench
