// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_command_line.hpp"

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>

#include "run/console.hpp"

namespace tessera::bench {
namespace {

std::vector<std::string> words(const std::string& line) { return split_text(line, ' '); }

template <class T>
T parse(const std::vector<std::string>& arguments) {
  return std::get<T>(parse_command_line(arguments));
}

void expect_error(const std::vector<std::string>& arguments, const std::string& piece) {
  try {
    parse_command_line(arguments);
    ADD_FAILURE() << "no error about " << piece;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find(piece), std::string::npos) << error.what();
  }
}

TEST(BenchCommandLine, RunTakesAllItsOptions) {
  const auto run = parse<RunOptions>(
      words("run a.toml -o dir --case a,b --case c --resume --retry failed,timeout --dry-run "
            "--small --set measure.steps=3 --set model.seed=1 --inject stall@1"));
  EXPECT_EQ(run.source.file, "a.toml");
  EXPECT_TRUE(run.source.small);
  EXPECT_EQ(run.source.overrides, (std::vector<std::string>{"measure.steps=3", "model.seed=1"}));
  EXPECT_EQ(run.directory, "dir");
  EXPECT_EQ(run.only, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(run.resume);
  EXPECT_EQ(run.retry, (std::vector<std::string>{"failed", "timeout"}));
  EXPECT_TRUE(run.dry_run);
  ASSERT_TRUE(run.fault);
  EXPECT_EQ(run.fault->kind, Fault::Kind::stalls);
  EXPECT_EQ(run.fault->rank, 1);
}

TEST(BenchCommandLine, RanksAndStrategiesAreLists) {
  for (const char* command : {"run a.toml -o d ", "run a.toml -o d --small "}) {
    const auto run =
        parse<RunOptions>(words(std::string(command) + "--ranks 8,64 --strategy data,fsdp"));
    EXPECT_EQ(run.source.ranks, (std::vector<Size>{8, 64}));
    EXPECT_EQ(run.source.strategies, (std::vector<std::string>{"data", "fsdp"}));
  }
  expect_error({"list", "a.toml", "--ranks", "x"}, "--ranks: x must be a whole number");
}

TEST(BenchCommandLine, HelpHasTheExitCodesOfItsCommand) {
  const auto help = [](const std::string& command) {
    return parse<ShowText>({command, "--help"}).text;
  };
  const std::string of_run = help("run"), of_compare = help("compare");
  EXPECT_NE(of_run.find("77 some cases need other ranks"), std::string::npos);
  EXPECT_EQ(of_run.find("became worse"), std::string::npos) << of_run;
  EXPECT_NE(of_compare.find("0 no case became worse, 1 bad input"), std::string::npos);
  EXPECT_EQ(of_compare.find("77"), std::string::npos) << of_compare;
  EXPECT_EQ(of_compare.find("--kokkos-"), std::string::npos) << of_compare;
}

TEST(BenchCommandLine, JobsTakesAllItsOptions) {
  const auto jobs = parse<JobsOptions>(
      words("jobs a.toml --scheduler pbs -o dir --small --set measure.steps=3 --gpus --max-time 60 "
            "--ranks-per-node 4 --threads 8 --per-case --give-up 2 --template t"));
  EXPECT_EQ(jobs.source.file, "a.toml");
  EXPECT_TRUE(jobs.source.small);
  EXPECT_EQ(jobs.source.overrides, (std::vector<std::string>{"measure.steps=3"}));
  EXPECT_EQ(jobs.scheduler, "pbs");
  EXPECT_EQ(jobs.directory, "dir");
  EXPECT_TRUE(jobs.gpus);
  EXPECT_EQ(jobs.max_minutes.value_or(0), 60);
  EXPECT_EQ(jobs.ranks_per_node.value_or(0), 4);
  EXPECT_EQ(jobs.threads, 8);
  EXPECT_TRUE(jobs.per_case);
  EXPECT_EQ(jobs.give_up, 2);
  EXPECT_EQ(jobs.template_file, "t");
  expect_error({"jobs", "a.toml", "--scheduler", "lsf", "-o", "d"},
               "--scheduler: lsf must be one of slurm, flux, pbs");
  expect_error({"jobs", "a.toml", "--scheduler", "sbatch", "-o", "d"}, "did you mean slurm?");
}

TEST(BenchCommandLine, OtherCommands) {
  EXPECT_EQ(parse<StudySource>({"list", "a.toml"}).file, "a.toml");
  EXPECT_EQ(parse<CompareOptions>({"compare", "a", "b"}).after, "b");
  EXPECT_EQ(parse<CompareOptions>({"compare", "a", "b", "--json", "c"}).json, "c");
  EXPECT_NE(parse<ShowText>({"--help"}).text.find("compare"), std::string::npos);
  // The types and ranges that CLI11 would add to the names of values.
  for (const char* command : {"list", "run", "simulate", "calibrate", "jobs", "compare"})
    for (const char* added : {" in [", ":INT", ":UINT", ":FLOAT", "TEXT"})
      EXPECT_EQ(parse<ShowText>({command, "--help"}).text.find(added), std::string::npos)
          << command << added;
  EXPECT_NE(parse<ShowText>({"--version"}).text.find("tessera-bench "), std::string::npos);
}

TEST(BenchCommandLine, MistakesAreErrors) {
  expect_error({}, "a command is required");
  expect_error({"run", "a.toml"}, "--output");
  expect_error({"run", "a.toml", "-o", "d", "--retry", "skipped"}, "--retry: skipped");
  expect_error({"run", "a.toml", "-o", "d", "--rezume"}, "--rezume; did you mean --resume?");
  expect_error({"run", "a.toml", "-o", "d", "--lr=3"},
               "did you mean --set training.learning_rate=VALUE?");
  expect_error({"train", "a.toml", "-o", "d"}, "did you mean run?");
  expect_error({"run", "a.toml", "-o", "d", "--inject", "stall@-1"},
               "--inject = stall@-1: must be throw@RANK");
  expect_error({"compare", "a"}, "AFTER");
  for (const char* wrong : {"0", "-1", "1.5", "many"})
    expect_error({"calibrate", "-o", "f", "--gemm-size", wrong},
                 std::string("--gemm-size: ") + wrong + " must be a whole number of at least 1");
}

TEST(Faults, HaveAKindAndARank) {
  EXPECT_EQ(parse_fault("throw@12").rank, 12);
  EXPECT_EQ(parse_fault("stall@0").kind, Fault::Kind::stalls);
  for (const char* wrong :
       {"", "throw", "throw@", "throw@x", "throw@-1", "explode@1", "throw@1x", "throw@1@2"})
    EXPECT_THROW(parse_fault(wrong), Error) << wrong;
}

TEST(Lists, ShowWhatCasesNeed) {
  Study study;
  study.base.model.mlp.widths = {4, 8, 1};
  study.limits.memory_bytes = 3000;
  study.grids = {{{"ranks", {1, 2, 3}}, {"global_batch", {32}}}};
  study.exclusions = {{"too odd", {{"ranks", {3}}}}};
  const std::string list = case_list(study, make_cases(study));
  EXPECT_NE(list.find("exceeds limits.memory_bytes"), std::string::npos) << list;
  EXPECT_NE(list.find("\nskipped, with the reason\n  too odd\n    data-data3-"), std::string::npos)
      << list;
  EXPECT_NE(list.find("3 cases, 1 of them skipped; the others need 2 ranks"), std::string::npos)
      << list;
}

TEST(Lists, ShowFactorsThatIdsHide) {
  Study study;
  study.base.model.mlp.widths = {4, 8, 8, 1};
  study.grids = {{{"mesh", {"pipeline=2"}},
                  {"distributed.schedule", {"gpipe", "1f1b"}},
                  {"global_batch", {32}}}};
  const std::string list = case_list(study, make_cases(study));
  EXPECT_NE(list.find(" schedule "), std::string::npos) << list;
  EXPECT_NE(list.find(" gpipe "), std::string::npos) << list;
  EXPECT_EQ(list.find("global batch"), std::string::npos) << "is part of the id: " << list;
}

}  // namespace
}  // namespace tessera::bench
