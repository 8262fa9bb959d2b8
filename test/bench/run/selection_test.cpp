// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include <tessera/base/error.hpp>
#include <tessera/process/provenance.hpp>

#include "bench/results/results_support.hpp"
#include "bench/study/study_support.hpp"
#include "expect_error.hpp"
#include "run/launch.hpp"

namespace tessera::bench {
namespace {

using What = Selected::What;

Case case_of(const std::string& id, Size ranks) {
  Case point;
  point.id = id;
  point.mesh = MeshShape({{"data", ranks}});
  return point;
}

/// Cases a, b and c on 1, 2 and 4 ranks.
class Selection : public ::testing::Test {
 protected:
  /// Writes a result with these keys and others that do not matter.
  void write(const std::string& id, const nlohmann::json& keys) {
    nlohmann::json result = fake_result({.status = keys.at("status")});
    result["id"] = id;
    result.update(keys);
    results.write(ResultsDirectory::of_case(id, "result.json"), result);
  }
  std::vector<What> select(const RunOptions& options = {}, Size ranks = 4) {
    std::vector<What> found;
    for (const Case& point : cases)
      found.push_back(select_case(point, results, options, study, {ranks}).what);
    return found;
  }

  Study study;
  TemporaryDirectory directory;
  ResultsDirectory results{directory.path()};
  std::vector<Case> cases{case_of("a", 1), case_of("b", 2), case_of("c", 4)};
};

TEST_F(Selection, GivesUpCasesInWhichLaunchesEnd) {
  const auto attempt = [&](const std::string& id, const char* status) {
    const Size number = results.begin_attempt(id);
    write(id, {{"status", status}, {"started", utc_time()}, {"attempt", number}, {"launches", 0}});
  };
  attempt("a", "running");
  attempt("b", "ok");  // cut short between its rounds: another case ended the launch
  attempt("c", "running");
  EXPECT_EQ(select(), (std::vector{What::run, What::run, What::run}));
  EXPECT_EQ(select({.give_up = 1}), (std::vector{What::give_up, What::run, What::give_up}));
  EXPECT_EQ(select({.give_up = 2}), (std::vector{What::run, What::run, What::run}));
  attempt("a", "running");
  attempt("b", "running");
  attempt("c", "ok");
  EXPECT_EQ(select({.give_up = 1}), (std::vector{What::give_up, What::give_up, What::run}));
  EXPECT_EQ(select({.give_up = 2}), (std::vector{What::give_up, What::run, What::run}));
}

TEST_F(Selection, RunsCasesWithoutAResult) {
  EXPECT_EQ(select(), (std::vector{What::run, What::run, What::run}));
  write("b", {{"status", "ok"}});
  EXPECT_EQ(select(), (std::vector{What::run, What::keep, What::run}));
}

TEST_F(Selection, ContinuesACaseUntilEnoughLaunchesHaveMeasuredIt) {
  write("a", {{"status", "ok"}, {"launches", 0}});  // cut short between its rounds
  write("b", {{"status", "ok"}, {"launches", 1}});
  write("c", {{"status", "failed"}, {"launches", 0}});
  EXPECT_EQ(select(), (std::vector{What::run, What::keep, What::keep}));
  EXPECT_TRUE(select_case(cases[0], results, {}, study, {4}).continues);
  EXPECT_FALSE(select_case(cases[0], results, {.retry = {"ok"}}, study, {4}).continues);
  write("c", {{"status", "running"},
              {"started", utc_time()},
              {"launches", 0},
              {"rounds", {Round{"one", 0, 1, {1, 1}}}}});
  EXPECT_TRUE(select_case(cases[2], results, {}, study, {4}).continues) << "left behind";
  write("c",
        {{"status", "running"}, {"started", utc_time()}, {"launches", 0}, {"rounds", nullptr}});
  EXPECT_FALSE(select_case(cases[2], results, {}, study, {4}).continues)
      << "before its first round";
  write("c", {{"status", "failed"}, {"launches", 0}});
  study.measure.launches = 2;
  EXPECT_EQ(select(), (std::vector{What::run, What::run, What::keep}));
}

TEST_F(Selection, LeavesWhatNeedsMoreRanks) {
  EXPECT_EQ(select({}, 2), (std::vector{What::run, What::run, What::pending}));
}

TEST_F(Selection, LeavesWhatNeedsOtherThreads) {
  cases[0].config.training.distributed.threads = 2;
  const auto of = [&](std::optional<Size> threads) {
    return select_case(cases[0], results, {}, study, {4, threads});
  };
  EXPECT_EQ(of(2).what, What::run);
  EXPECT_EQ(of({}).what, What::run) << "nobody knows";
  EXPECT_EQ(of(1).what, What::pending);
  EXPECT_EQ(of(1).note, "needs 2 threads per rank, but the launch has 1; set OMP_NUM_THREADS");
}

TEST_F(Selection, LeavesWhatNeedsAnotherBackend) {
  cases[0].config.comm.backend = Backend::nccl;
  const auto of = [&](const BackendFacts& facts) {
    return select_case(cases[0], results, {}, study, {4, {}, facts}).what;
  };
  EXPECT_EQ(of({true, true, 1}), What::run);
  EXPECT_EQ(of({true, false, 0}), What::pending);
}

TEST_F(Selection, RetriesRunAgain) {
  write("a", {{"status", "failed"}});
  write("b", {{"status", "timeout"}});
  write("c", {{"status", "ok"}});
  EXPECT_EQ(select(), (std::vector{What::keep, What::keep, What::keep}));
  EXPECT_EQ(select({.retry = {"failed", "timeout"}}),
            (std::vector{What::run, What::run, What::keep}));
  EXPECT_EQ(select({.only = {"b"}, .retry = {"failed", "timeout"}}),
            (std::vector{What::leave, What::run, What::leave}));
  EXPECT_EQ(select({.only = {"a", "b"}, .retry = {"failed", "ok"}}),
            (std::vector{What::run, What::keep, What::leave}));
}

TEST_F(Selection, KnowsARunningCaseFromOneThatWasLeftBehind) {
  for (const char* id : {"a", "b"}) write(id, {{"status", "running"}, {"started", utc_time()}});
  std::optional<CaseLock> lock = results.take_case("a");
  ASSERT_TRUE(lock);
  EXPECT_EQ(select(), (std::vector{What::leave, What::run, What::run}));
  EXPECT_FALSE(results.take_case("a")) << "somebody runs it";
  EXPECT_TRUE(results.take_case("b"));
  lock.reset();
  EXPECT_EQ(select(), (std::vector{What::run, What::run, What::run}));
  EXPECT_TRUE(results.take_case("a")) << "at once";
}

TEST_F(Selection, ALockEndsWithItsProcess) {
  write("a", {{"status", "running"}, {"started", utc_time()}});
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::optional<CaseLock> lock = results.take_case("a");
    static_cast<void>(::write(ready[1], lock ? "y" : "n", 1));
    pause();
    _exit(0);
  }
  char taken = 'n';
  ASSERT_EQ(::read(ready[0], &taken, 1), 1);
  EXPECT_EQ(taken, 'y');
  EXPECT_EQ(select()[0], What::leave);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(select()[0], What::run);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(Selection, WithoutLocksTheStartTimeDecides) {
  EXPECT_TRUE(still_runs(LockState::held, "2001-01-01T00:00:00Z", 10));
  EXPECT_FALSE(still_runs(LockState::free, utc_time(), 10));
  EXPECT_TRUE(still_runs(LockState::unknown, utc_time(), 10)) << "it may well live";
  EXPECT_FALSE(still_runs(LockState::unknown, "2001-01-01T00:00:00Z", 10));
}

// A rerun would overwrite a file that somebody has edited.
TEST_F(Selection, AResultThatIsDamagedIsAnError) {
  write("a", {{"status", "ok"}, {"attempt", 0}});
  const std::string file = (directory.path() / "cases/a/result.json").string();
  EXPECT_EQ(test::error_of([&] { select(); }),
            file + ": attempt = 0: must be an integer from 1 to 1000000");
  directory.write("cases/a/result.json", R"({"status": "ok", )");
  EXPECT_TRUE(test::error_of([&] {
                select();
              }).starts_with(file + ": is not a JSON document: parse error at line 1, column 18"));
}

TEST_F(Selection, RunsSkippedCasesOnceTheyApply) {
  write("a", {{"status", "skipped"}});
  cases[1].skip_reason = "too large";
  EXPECT_EQ(select(), (std::vector{What::run, What::skip, What::run}));
  write("b", {{"status", "skipped"}});
  EXPECT_EQ(select()[1], What::keep);
  cases[2].skip_reason = "too small";
  EXPECT_EQ(select({.only = {"a"}})[2], What::skip) << "whichever launch comes first says so";
}

TEST_F(Selection, AttemptsAreKept) {
  EXPECT_EQ(results.begin_attempt("a"), 1);
  write("a", {{"status", "failed"}, {"attempt", 1}});
  EXPECT_EQ(results.begin_attempt("a"), 2);
  write("a", {{"status", "ok"}, {"attempt", 2}});
  EXPECT_EQ(results.begin_attempt("a"), 3);
  EXPECT_TRUE(std::filesystem::exists(directory.path() / "cases/a/attempts/1.json"));
  EXPECT_TRUE(std::filesystem::exists(directory.path() / "cases/a/attempts/2.json"));
}

TEST_F(Selection, ADirectoryBelongsToOneStudy) {
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
  try {
    check_id(cases, "data-data2-b64-0123abce");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean data-data2-b64-0123abcd?"),
              std::string::npos);
  }
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
