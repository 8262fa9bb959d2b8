// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_command_line.hpp"

#include <sstream>

#include <CLI/CLI.hpp>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/version.hpp>

namespace tessera::bench {
namespace {

constexpr const char* examples = R"(
Examples:
  tessera-bench list inputs/strong_scaling.toml
  mpirun -n 8 tessera-bench run inputs/strong_scaling.toml -o results/strong
  mpirun -n 8 tessera-bench run inputs/strong_scaling.toml -o results/strong --resume --retry failed,timeout
  mpirun -n 4 tessera-bench run inputs/strong_scaling.toml -o results/strong --case ID
  tessera-bench compare results/before results/after

Exit codes: 0 all cases ok or skipped, 1 bad input, 2 a wrong loss or a deviation from the plan, 3 out of memory, 4 time
limit exceeded, 5 communication error, 77 some cases need more ranks. Arguments starting with --kokkos- are passed to
Kokkos.)";

const std::string hint = "; see tessera-bench --help";

void add_source(CLI::App& command, StudySource& source) {
  command.add_option("FILE", source.file, "Study file (TOML)")->required();
  command.add_flag("--small", source.small,
                   "Run the small variant of the study, from its table [small]");
  command
      .add_option("--set", source.overrides, "Override one key of the study or its configuration")
      ->type_name("SECTION.KEY=VALUE")
      ->allow_extra_args(false);
}

struct GivenRun {
  RunOptions options;
  std::string retry;
};

void add_run(CLI::App& app, GivenRun& given) {
  CLI::App& run = *app.add_subcommand("run", "Run the cases that have no result yet");
  add_source(run, given.options.source);
  run.add_option("-o,--output", given.options.directory, "Results directory")
      ->type_name("DIR")
      ->required();
  run.add_option("--case", given.options.only, "Run this case only")->type_name("ID");
  run.add_flag("--resume", given.options.resume, "Continue with the results in the directory");
  run.add_option("--retry", given.retry, "Rerun cases with these statuses")
      ->type_name("STATUS[,STATUS...]");
  run.add_flag("--dry-run", given.options.dry_run, "Show what would run without running it");
  run.add_option("--seed", given.options.seed, "Seed for the order of cases");
  run.add_flag("--trace", given.options.traces,
               "Keep each case's instrumented steps as cases/ID/trace.json, for Perfetto");
  run.add_option("--inject", given.options.inject,
                 "For testing: make this rank throw or stall in the warm-up of each case")
      ->type_name("throw@RANK|stall@RANK");
}

RunOptions finish(GivenRun& given) {
  static const std::vector<std::string> known{"ok", "invalid", "oom", "timeout", "failed"};
  RunOptions& options = given.options;
  for (const std::string& status :
       given.retry.empty() ? std::vector<std::string>{} : split_text(given.retry, ',')) {
    if (std::find(known.begin(), known.end(), status) == known.end())
      throw ConfigError("--retry", status, "must be a list of " + join(known));
    options.retry.push_back(status);
  }
  return options;
}

}  // namespace

Command parse_command_line(const std::vector<std::string>& arguments) {
  CLI::App app("Measure how training scales over ranks, meshes and strategies", "tessera-bench");
  app.set_version_flag("--version", "tessera-bench " + std::string(version()));
  app.require_subcommand(0, 1);
  app.footer(examples);
  StudySource list;
  GivenRun run;
  CompareOptions compare;
  add_source(*app.add_subcommand(
                 "list", "Show the cases of a study and what each of them needs, without MPI"),
             list);
  add_run(app, run);
  CLI::App& comparison = *app.add_subcommand("compare", "Show which cases became faster or slower");
  comparison.add_option("BEFORE", compare.before, "Results directory")->required();
  comparison.add_option("AFTER", compare.after, "Results directory")->required();

  std::vector<std::string> reversed;  // as CLI11 wants them
  for (auto argument = arguments.rbegin(); argument != arguments.rend(); ++argument)
    if (!argument->starts_with("--kokkos-")) reversed.push_back(*argument);
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, unused;
    if (app.exit(error, out, unused) == 0) return ShowText{out.str()};
    throw Error(ExitCode::usage, one_line(error.what()) + hint);
  }
  if (app.got_subcommand("list")) return list;
  if (app.got_subcommand("run")) return finish(run);
  if (app.got_subcommand("compare")) return compare;
  throw Error(ExitCode::usage, "a command is required: list, run or compare" + hint);
}

}  // namespace tessera::bench
