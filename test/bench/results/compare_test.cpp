// SPDX-License-Identifier: Apache-2.0
#include "results/compare.hpp"

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>

#include "bench/results/results_support.hpp"
#include "bench/study/study_support.hpp"

namespace tessera::bench {
namespace {

nlohmann::json steps(double median, double low, double high) {
  return {{"median", median}, {"ci95_low", low}, {"ci95_high", high}};
}

TEST(Compare, NeedsDisjointIntervalsAndAnEffect) {
  const auto before = steps(1.00, 0.99, 1.01);
  EXPECT_EQ(compare_steps(before, steps(0.90, 0.89, 0.91)), "better");
  EXPECT_EQ(compare_steps(before, steps(1.10, 1.09, 1.11)), "worse");
  EXPECT_EQ(compare_steps(before, steps(1.10, 1.00, 1.20)), "indistinguishable") << "they overlap";
  EXPECT_EQ(compare_steps(before, steps(1.02, 1.015, 1.025)), "indistinguishable") << "2 %";
  EXPECT_EQ(compare_steps(steps(1, 0.9999, 1.0001), steps(1.029, 1.0289, 1.0291)),
            "indistinguishable");
  EXPECT_EQ(compare_steps(steps(1, 0.9999, 1.0001), steps(1.031, 1.0309, 1.0311)), "worse");
  EXPECT_FALSE(
      compare_steps(before, {{"median", 1}, {"ci95_low", nullptr}, {"ci95_high", nullptr}}));
}

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
  EXPECT_NE(text.find("8.00 s    2.00 s   -75.0%  better"), std::string::npos) << text;
  EXPECT_NE(text.find("ok -> failed"), std::string::npos) << text;
  EXPECT_NE(text.find("only after"), std::string::npos) << text;
  EXPECT_NE(text.find("only before"), std::string::npos) << text;
  EXPECT_NE(text.find("1 better, 1 ok -> failed"), std::string::npos) << text;
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
