// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>

#include "bench/results/results_support.hpp"
#include "expect_error.hpp"
#include "run/launch.hpp"
#include "temporary_directory.hpp"

namespace tessera::bench {
namespace {

using What = Selected::What;

Case case_of(const std::string& id, Size ranks) {
  Case point;
  point.id = id;
  point.mesh = MeshShape({{"data", ranks}});
  return point;
}

CaseResult result_with(const std::string& status, Size launches = 1, Size crashes = 0) {
  CaseResult result = fake_result({.status = status});
  result.launches = launches;
  result.crashes = crashes;
  return result;
}

/// Cases a, b and c on 1, 2 and 4 ranks, without results unless a test gives them.
class Selection : public ::testing::Test {
 protected:
  std::vector<What> select(const RunOptions& options = {}, Size ranks = 4) {
    std::vector<What> found;
    for (const Case& point : cases)
      found.push_back(select_case(point, of[point.id], options, study, {ranks}).what);
    return found;
  }

  Study study;
  std::map<std::string, CaseResult> of;
  std::vector<Case> cases{case_of("a", 1), case_of("b", 2), case_of("c", 4)};
};

TEST_F(Selection, GivesUpCasesInWhichLaunchesEnd) {
  of["a"] = result_with("pending", 0, 1);
  of["b"] = result_with("ok", 0, 0);  // cut short between its rounds: another case ended the launch
  of["c"] = result_with("ok", 0, 2);
  EXPECT_EQ(select(), (std::vector{What::run, What::run, What::run}));
  EXPECT_EQ(select({.give_up = 1}), (std::vector{What::give_up, What::run, What::give_up}));
  EXPECT_EQ(select({.give_up = 2}), (std::vector{What::run, What::run, What::give_up}));
  EXPECT_EQ(select({.retry = {"ok"}, .give_up = 1})[2], What::run) << "as asked";
  of["c"] = result_with("ok", 1, 2);
  EXPECT_EQ(select({.give_up = 1})[2], What::keep) << "another launch has measured it";
}

TEST_F(Selection, ContinuesACaseUntilEnoughLaunchesHaveMeasuredIt) {
  of["a"] = result_with("ok", 0);  // cut short between its rounds
  of["b"] = result_with("ok", 1);
  of["c"] = result_with("failed", 0);
  EXPECT_EQ(select(), (std::vector{What::run, What::keep, What::keep}));
  EXPECT_FALSE(select_case(cases[0], of["a"], {}, study, {4}).retries);
  EXPECT_TRUE(select_case(cases[0], of["a"], {.retry = {"ok"}}, study, {4}).retries);
  study.measure.launches = 2;
  EXPECT_EQ(select(), (std::vector{What::run, What::run, What::keep}));
}

TEST_F(Selection, LeavesWhatNeedsMoreRanks) {
  EXPECT_EQ(select({}, 2), (std::vector{What::run, What::run, What::pending}));
}

TEST_F(Selection, LeavesWhatNeedsOtherThreads) {
  cases[0].config.training.distributed.threads = 2;
  const auto of = [&](std::optional<Size> threads) {
    return select_case(cases[0], {}, {}, study, {4, threads});
  };
  EXPECT_EQ(of(2).what, What::run);
  EXPECT_EQ(of({}).what, What::run) << "nobody knows";
  EXPECT_EQ(of(1).what, What::pending);
  EXPECT_EQ(of(1).note, "needs 2 threads per rank, but the launch has 1; set OMP_NUM_THREADS");
}

TEST_F(Selection, LeavesWhatNeedsAnotherBackend) {
  cases[0].config.comm.backend = Backend::nccl;
  const auto of = [&](const BackendFacts& facts) {
    return select_case(cases[0], {}, {}, study, {4, {}, facts}).what;
  };
  EXPECT_EQ(of({true, true, 1}), What::run);
  EXPECT_EQ(of({true, false, 0}), What::pending);
}

TEST_F(Selection, RetriesRunAgain) {
  of["a"] = result_with("failed");
  of["b"] = result_with("timeout");
  of["c"] = result_with("ok");
  EXPECT_EQ(select(), (std::vector{What::keep, What::keep, What::keep}));
  EXPECT_EQ(select({.retry = {"failed", "timeout"}}),
            (std::vector{What::run, What::run, What::keep}));
  EXPECT_EQ(select({.only = {"b"}, .retry = {"failed", "timeout"}}),
            (std::vector{What::leave, What::run, What::leave}));
  EXPECT_EQ(select({.only = {"a", "b"}, .retry = {"failed", "ok"}}),
            (std::vector{What::run, What::keep, What::leave}));
}

TEST_F(Selection, RunsSkippedCasesOnceTheyApply) {
  cases[1].skip_reason = "too large";
  of["b"] = result_with("ok");
  EXPECT_EQ(select(), (std::vector{What::run, What::skip, What::run}));
  EXPECT_EQ(select({.only = {"a"}})[1], What::skip);
}

TEST_F(Selection, ADirectoryBelongsToOneStudy) {
  const test::TemporaryDirectory directory;
  const ResultsDirectory results(directory.path());
  const StudyCases study = study_of(fake_results({}));
  results.prepare(study, false);
  EXPECT_THROW(results.prepare(study, false), Error) << "without --resume";
  results.prepare(study, true);
  StudyCases other = study;
  other.study.name = "other";
  EXPECT_THROW(results.prepare(other, true), Error);
}

TEST_F(Selection, AMisspeltCaseIsAnErrorWithTheNearest) {
  cases = {case_of("data-data2-b64-0123abcd", 2)};
  check_id(cases, "data-data2-b64-0123abcd");
  const std::string said = test::error_of([&] { check_id(cases, "data-data2-b64-0123abce"); });
  EXPECT_NE(said.find("did you mean data-data2-b64-0123abcd?"), std::string::npos) << said;
}

TEST(Order, DependsOnTheSeedOnly) {
  std::vector<std::size_t> numbers(20);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  const auto first = shuffled(numbers, 1);
  EXPECT_EQ(first, shuffled(numbers, 1));
  EXPECT_NE(first, shuffled(numbers, 2));
  EXPECT_NE(first, numbers);
  EXPECT_TRUE(std::is_permutation(first.begin(), first.end(), numbers.begin()));
  EXPECT_TRUE(shuffled({}, 1).empty());
}

}  // namespace
}  // namespace tessera::bench
