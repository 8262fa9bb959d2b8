// SPDX-License-Identifier: Apache-2.0
#include "run/jobs.hpp"

#include <gtest/gtest.h>

#include <tessera/predict/machine_file.hpp>

#include "run/reference_plan.hpp"

namespace tessera::bench {
namespace {

using Strings = std::vector<std::string>;

/// Cases on 1, 2 and 4 ranks with 2 batches each.
Study study_of_jobs() {
  Study study;
  study.base.model.mlp.widths = {4, 256, 1};
  study.limits.case_seconds = 100;
  study.grids = {{{"ranks", {1, 2, 4}}, {"global_batch", {32, 64}}}};
  return study;
}

Machine machine_of_jobs() { return load_machine(TESSERA_INPUTS "/machines/cpu_cluster.toml"); }

std::vector<const Case*> pointers(const std::vector<Case>& cases) {
  std::vector<const Case*> all;
  for (const Case& point : cases) all.push_back(&point);
  return all;
}

TEST(Jobs, AreOneForEachNumberOfRanksAndThreads) {
  std::vector<Case> cases = make_cases(study_of_jobs());
  cases[0].skip_reason = "excluded";
  cases[4].config.training.distributed.threads = 8;
  const std::vector<Job> jobs = make_jobs(cases, {.threads = 2});
  Strings names;
  std::vector<std::size_t> sizes;
  for (const Job& job : jobs) {
    names.push_back(job.name);
    sizes.push_back(job.cases.size());
  }
  ASSERT_EQ(jobs.size(), 4u);
  EXPECT_EQ(names, (Strings{"ranks-1", "ranks-2", "ranks-4", "ranks-4-threads-8"}));
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 2, 1, 1}));
  EXPECT_EQ(jobs[3].threads, 8);
}

TEST(Jobs, MayBeOneForEachCase) {
  const std::vector<Case> cases = make_cases(study_of_jobs());
  const std::vector<Job> jobs = make_jobs(cases, {.per_case = true});
  ASSERT_EQ(jobs.size(), 6u) << cases[0].skip_reason.value_or("");
  for (const Job& job : jobs) {
    ASSERT_EQ(job.cases.size(), 1u);
    EXPECT_EQ(job.name, job.cases[0]->id);
    EXPECT_EQ(job.ranks, job.cases[0]->ranks());
  }
}

TEST(JobTime, IsTheLimitOfEachCaseWithoutAMachine) {
  const Study study = study_of_jobs();
  EXPECT_DOUBLE_EQ(seconds_of(pointers(make_cases(study)), study, {}), 600 + 2 * 100)
      << "with a reference for each batch";
}

TEST(JobTime, IsPredictedButNoLongerThanTheLimit) {
  Study study = study_of_jobs();
  study.measure.block_seconds = 0;
  const std::vector<Case> cases = make_cases(study);
  const auto of = [&](const std::vector<const Case*>& some, double safety) {
    return seconds_of(some, study, TimeSource{machine_of_jobs(), safety});
  };
  const double once = of({&cases[2]}, 1) - of({&cases[2]}, 0);
  EXPECT_GT(once, 0);
  EXPECT_NEAR(of({&cases[2]}, 3) - of({&cases[2]}, 0), 3 * once, 1e-9);
  EXPECT_DOUBLE_EQ(of({&cases[2]}, 1e9), 200) << "limits.case_seconds ends a case";
  // Cases of the same work share their reference.
  ASSERT_EQ(reference_name(cases[2].config), reference_name(cases[4].config));
  EXPECT_LT(of({&cases[2], &cases[4]}, 1), of({&cases[2]}, 1) + of({&cases[4]}, 1));
  // More steps take longer.
  study.measure.warm_up *= 10;
  EXPECT_GT(of({&cases[2]}, 1), of({&cases[2]}, 0) + 2 * once);
}

TEST(JobScript, FillsInATemplate) {
  EXPECT_EQ(fill_template("#X -n @ranks@@name@\n@run@\n", "t",
                          {{"ranks", "4"}, {"name", "a"}, {"run", "x\ny"}}),
            "#X -n 4a\nx\ny\n");
  EXPECT_EQ(fill_template("me@site.org \"$@\" @run@", "t", {{"run", "x"}}),
            "me@site.org \"$@\" x\n");
}

TEST(JobScript, QuotesForTheShell) {
  EXPECT_EQ(shell_word("/a/b-c_d.toml"), "/a/b-c_d.toml");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("$x;y"), "'$x;y'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace tessera::bench
