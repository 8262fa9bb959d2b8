// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_command_line.hpp"

#include <algorithm>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/argument_hints.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/process/kokkos_start.hpp>
#include <tessera/process/progress.hpp>
#include <tessera/process/provenance.hpp>

#include "cli/whole_number.hpp"
#include "run/jobs.hpp"

namespace tessera::bench {
namespace {

constexpr CommandExamples examples[] = {
    {"list", R"(  tessera-bench list inputs/strong_scaling.toml
)"},
    {"run", R"(  mpirun -n 8 tessera-bench run inputs/strong_scaling.toml -o results/strong
  mpirun -n 8 tessera-bench run inputs/strong_scaling.toml -o results/strong --resume --retry failed,timeout
  mpirun -n 4 tessera-bench run inputs/strong_scaling.toml -o results/strong --case ID
)"},
    {"calibrate", R"(  mpirun -n 16 tessera-bench calibrate -o machine.toml
)"},
    {"simulate",
     R"(  tessera-bench simulate inputs/strong_scaling.toml --machine inputs/machines/cpu_cluster.toml -o results/simulated
)"},
    {"jobs",
     R"(  tessera-bench jobs inputs/strong_scaling.toml --scheduler slurm --ranks-per-node 8 -o jobs
)"},
    {"compare", R"(  tessera-bench compare results/before results/after
  tessera-bench compare results/before results/after --json comparison.json
)"},
};

const std::string kokkos_note = "Kokkos gets the arguments that begin with --kokkos-.";
const std::string run_note =
    R"(Exit codes: 0 all cases are ok or skipped, 1 bad input, 2 a wrong loss or a deviation from the plan, 3 out of memory,
4 time limit exceeded, 5 communication error, 77 some cases need other ranks or threads.
)" + kokkos_note;
const std::string compare_note =
    R"(Exit codes: 0 no case became worse, 1 bad input or no case that can be compared, 2 a case became slower, or ends in an
error now.)";
const std::string plain_note = "Exit codes: 0 done, 1 bad input.";

/// Returns the end of the help of a command, or of the program if it is empty.
std::string footer_of(const std::string& command) {
  const bool runs = command.empty() || command == "run" || command == "simulate";
  return help_footer(examples, command,
                     runs                     ? run_note
                     : command == "compare"   ? compare_note
                     : command == "calibrate" ? plain_note + " " + kokkos_note
                                              : plain_note);
}

const std::string hint = "; see tessera-bench --help";

/// Adds an option with a value. `type` stands for it in the help.
template <class T>
CLI::Option& add(CLI::App& command, const char* names, T& value, const char* type,
                 const std::string& help) {
  return *command.add_option(names, value, help)->type_name(type);
}

/// Adds an option whose value is a whole number of at least 1.
template <class T>
CLI::Option& add_count(CLI::App& command, const char* names, T& value, const char* type,
                       const std::string& help) {
  return *add(command, names, value, type, help).check(at_least_one());
}

/// The help shows the names as {a,b,c}, which shells complete.
CLI::Validator one_of(const std::vector<std::string_view>& names) {
  return CLI::Validator(
      [names](const std::string& name) {
        return std::ranges::find(names, name) != names.end()
                   ? ""
                   : name + " " + must_be_one_of(name, names);
      },
      fmt::format("{{{}}}", join(names, ",")));
}

/// Adds an option whose value is a list with commas.
template <class T>
CLI::Option& add_list(CLI::App& command, const char* names, std::vector<T>& values,
                      const char* type, const std::string& help) {
  CLI::Option& option = add(command, names, values, type, help);
  option.delimiter(',')->allow_extra_args(false);
  return option;
}

void add_source(CLI::App& command, StudySource& source) {
  command.add_option("FILE", source.file, "Study file (TOML)")->required()->type_name("");
  command.add_flag("--small", source.small,
                   "Use the small variant of the study, which its table [small] gives");
  add(command, "--set", source.overrides, "SECTION.KEY=VALUE",
      "Override one key of the study or its configuration")
      .allow_extra_args(false);
  add_list(command, "--ranks", source.ranks, "N[,N...]",
           "Numbers of ranks, in place of those and of fixed meshes of the study")
      .check(at_least_one(most_ranks));
  add_list(command, "--strategy", source.strategies, "NAME[,NAME...]",
           "Strategies, in place of those of the study");
}

void add_run(CLI::App& app, RunOptions& options) {
  CLI::App& run = *app.add_subcommand("run", "Run the cases that have no result yet");
  add_source(run, options.source);
  add(run, "-o,--output", options.directory, "DIR", "Results directory").required();
  add_list(run, "--case", options.only, "ID[,ID...]", "Run these cases only");
  run.add_flag("--resume", options.resume, "Continue with the results in the directory");
  add_list(run, "--retry", options.retry, "STATUS[,STATUS...]", "Rerun cases with these statuses")
      .check(one_of({"ok", "unverified", "invalid", "oom", "timeout", "failed"}));
  add(run, "--machine", options.machine, "FILE",
      "Machine file (TOML) to predict each case from, instead of measuring this machine");
  add_count(
      run, "--give-up", options.give_up, "N",
      "Record a case as failed, instead of trying it again, once N launches have ended during it");
  run.add_flag("--dry-run", options.dry_run, "Show what would run without running it");
  run.add_flag("--fom", options.figures_of_merit,
               "Print the figures of merit, which DIR/figures_of_merit.txt has, as well");
  run.add_flag("--trace", options.traces,
               "Keep each case's instrumented steps as cases/ID/trace.json, for Perfetto");
  run.add_option_function<std::string>(
         "--inject", [&](const std::string& text) { options.fault = parse_fault(text); },
         "For testing: make a rank throw or stall in the warm-up of each case")
      ->type_name("throw@RANK|stall@RANK");
}

void add_simulate(CLI::App& app, SimulateOptions& options) {
  CLI::App& simulate = *app.add_subcommand(
      "simulate", "Predict the cases of a study on a machine that a file describes, without MPI");
  add_source(simulate, options.source);
  add(simulate, "-o,--output", options.directory, "DIR", "Results directory").required();
  add(simulate, "--machine", options.machine, "FILE", "Machine file (TOML), as in inputs/machines")
      .required();
}

void add_calibrate(CLI::App& app, CalibrateOptions& options) {
  CLI::App& calibrate =
      *app.add_subcommand("calibrate", "Measure this machine and write a machine file");
  add(calibrate, "-o,--output", options.output, "FILE", "Machine file to write").required();
  add_count(calibrate, "--gemm-size", options.gemm_size, "N",
            "Rows of the square matrices whose products are timed")
      .capture_default_str();
}

void add_jobs(CLI::App& app, JobsOptions& options) {
  CLI::App& jobs = *app.add_subcommand(
      "jobs", "Write job scripts of a study for a cluster's scheduler, without MPI");
  add_source(jobs, options.source);
  std::vector<std::string_view> names;
  for (const JobScheduler& scheduler : schedulers) names.push_back(scheduler.name);
  add(jobs, "--scheduler", options.scheduler, "NAME", "The scheduler that the scripts are for")
      .required()
      ->check(one_of(names));
  add(jobs, "-o,--output", options.directory, "DIR",
      "Directory for the scripts, and for the results of the jobs")
      .required();
  add_count(jobs, "--max-time", options.max_minutes, "MINUTES",
            "Longest time limit that a job may have");
  add_count(jobs, "--ranks-per-node", options.ranks_per_node, "N",
            "Ranks per node (default: the study's distributed.num_processes_per_node)");
  jobs.add_flag("--gpus", options.gpus, "Request a GPU for each rank");
  add_count(jobs, "--threads", options.threads, "N",
            "Threads per rank for cases that do not set them (1)");
  jobs.add_flag("--per-case", options.per_case,
                "Write one job per case instead of one per number of ranks");
  add_count(jobs, "--give-up", options.give_up, "N",
            "Record a case as failed once N launches have ended during it (1)");
  add(jobs, "--template", options.template_file, "FILE",
      "Template for the scripts, instead of the scheduler's in scripts/jobs");
}

}  // namespace

Fault parse_fault(const std::string& text) {
  const std::vector<std::string> words = split_text(text, '@');
  const auto kind = value_named<Fault::Kind>(words.front());
  const auto rank = number_of<int>(words.back());
  if (words.size() != 2 || !kind || !rank || *rank < 0)
    throw ConfigError("--inject", text, "must be throw@RANK or stall@RANK");
  return {*kind, *rank};
}

Command parse_command_line(const std::vector<std::string>& arguments) {
  CLI::App app("Measure how training scales over ranks, meshes and strategies", "tessera-bench");
  app.set_version_flag("--version", "tessera-bench " + std::string(version()));
  app.require_subcommand(0, 1);
  StudySource list;
  RunOptions run;
  CompareOptions compare;
  add_source(*app.add_subcommand(
                 "list", "Show the cases of a study and what each of them needs, without MPI"),
             list);
  add_run(app, run);
  SimulateOptions simulate{.arguments = arguments};
  add_simulate(app, simulate);
  CalibrateOptions calibrate;
  add_calibrate(app, calibrate);
  JobsOptions jobs;
  add_jobs(app, jobs);
  CLI::App& comparison = *app.add_subcommand("compare", "Show which cases became faster or slower");
  comparison.add_option("BEFORE", compare.before, "Results directory to compare with")
      ->required()
      ->type_name("");
  comparison.add_option("AFTER", compare.after, "Results directory that is compared")
      ->required()
      ->type_name("");
  add(comparison, "--json", compare.json, "FILE",
      "Also write the comparison to this file, as JSON");
  app.footer(footer_of(""));
  std::string progress;
  for (const char* command : {"run", "simulate", "calibrate"})
    app.get_subcommand(command)
        ->add_option("--progress", progress,
                     "Lines on stderr that tell what is being done; default: the variable "
                     "TESSERA_PROGRESS, or auto")
        ->type_name(fmt::format("NAME:{{{}}}", join(names_of<ProgressMode>, ",")));
  for (CLI::App* command : app.get_subcommands({})) command->footer(footer_of(command->get_name()));

  try {
    app.parse(reversed_own_arguments(arguments));
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, unused;
    if (app.exit(error, out, unused) == 0) return ShowText{out.str()};
    throw Error(ExitCode::usage,
                excerpt(one_line(error.what()), 300) + hint_for_arguments(app, arguments) + hint);
  }
  set_progress_mode(progress);
  if (app.got_subcommand("list")) return list;
  if (app.got_subcommand("run")) return run;
  if (app.got_subcommand("simulate")) return simulate;
  if (app.got_subcommand("calibrate")) return calibrate;
  if (app.got_subcommand("jobs")) return jobs;
  if (app.got_subcommand("compare")) return compare;
  throw Error(ExitCode::usage,
              "a command is required: list, run, simulate, calibrate, jobs or compare" + hint);
}

}  // namespace tessera::bench
