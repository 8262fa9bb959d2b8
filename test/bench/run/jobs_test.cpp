// SPDX-License-Identifier: Apache-2.0
#include "run/jobs.hpp"

#include <gtest/gtest.h>

namespace tessera::bench {
namespace {

using Strings = std::vector<std::string>;

/// Cases on 1, 2 and 4 ranks with 2 batches each.
Study study_of_jobs() {
  Study study;
  study.base.model.mlp.widths = {4, 256, 1};
  study.grids = {{{"ranks", {1, 2, 4}}, {"global_batch", {32, 64}}}};
  return study;
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
