// SPDX-License-Identifier: Apache-2.0
#include <sstream>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <tessera/app/commands.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/argument_hints.hpp>
#include <tessera/plan/layout/strategy.hpp>
#include <tessera/process/kokkos_start.hpp>
#include <tessera/process/progress.hpp>
#include <tessera/process/provenance.hpp>

namespace tessera {
namespace {

constexpr CommandExamples examples[] = {
    {"run", R"(  tessera run inputs/tutorial.toml                  one rank
  mpirun -n 4 tessera run inputs/tutorial.toml      batches split over 4 ranks
  mpirun -n 4 tessera run inputs/tutorial.toml --mesh data=4 --ranks-expected 4
  tessera run inputs/tutorial.toml --set model.dtype=float64 --json result.json
  mpirun -n 4 tessera run inputs/tutorial.toml --trace trace.json
                                                    what each rank did when, for Perfetto
  tessera run inputs/tutorial.toml --print-config   every key, its value and meaning
  mpirun -n 4 tessera run inputs/tutorial.toml --strategy fsdp
                                                    parameters sharded as well
  tessera run inputs/tutorial.toml --set checkpoint.directory=saves --resume-if-present
                                                    resumes where an earlier run ended
  tessera run inputs/tutorial.toml --mesh data=16 --as-rank 5
                                                    what rank 5 of 16 computes, on one rank
)"},
    {"plan", R"(  tessera plan inputs/tutorial.toml --mesh data=2,model=4
                                                    what 8 ranks would hold and send
  tessera plan inputs/workshop_pipeline.toml --schedule
                                                    what each stage does in a step
  tessera plan inputs/hybrid.toml --mesh data=2,fsdp=2 --tensors
                                                    which part of every tensor each rank holds
  tessera plan inputs/fsdp.toml --ranks 8 --machine inputs/machines/gpu_cluster.toml --chakra traces
                                                    the step as execution traces, for ASTRA-sim
)"},
    {"checkpoint",
     R"(  tessera checkpoint show FILE  its training state and arrays
)"},
    {"diff",
     R"(  tessera diff one.hashes four.hashes               the first step and tensor that differ
)"},
    {"info", R"(  mpirun -n 4 tessera info                          what a job on 4 ranks finds
)"},
};

const std::string note =
    "Bad input exits with code 1. --kokkos-num-threads and --kokkos-device-id go to Kokkos.";

/// "NAME:{a,b,c}", as CLI11 shows choices; the shell completes them.
template <class Enum>
std::string choices() {
  return "NAME:{" + join(names_of<Enum>, ",") + "}";
}

/// Adds an option; --help calls its value `type`.
template <class T>
CLI::Option* add(CLI::App& command, const char* flag, T& value, const std::string& type,
                 const std::string& what) {
  return command.add_option(flag, value, what)->type_name(type);
}

void add_source(CLI::App& command, ConfigSource& source) {
  add(command, "FILE", source.file, "", "Configuration file (TOML)")->required();
  add(command, "--set", source.overrides, "SECTION.KEY=VALUE", "Override one key of the file")
      ->allow_extra_args(false);
  add(command, "--mesh", source.mesh, "AXIS=N[,AXIS=N...]",
      "Mesh of ranks; a size may be nodes or per_node, and one -1 for the remaining ranks");
  add(command, "--strategy", source.strategy, choices<Strategy>(), "Parallel strategy");
}

void add_progress(CLI::App& command, std::string& mode) {
  add(command, "--progress", mode, choices<ProgressMode>(),
      "Lines on stderr that tell what is being done; default: the variable TESSERA_PROGRESS, or "
      "auto");
}

void add_run(CLI::App& app, TrainOptions& options) {
  CLI::App& run = *app.add_subcommand("run", "Train and report");
  add_source(run, options.source);
  add(run, "--ranks-expected", options.source.ranks_expected, "N",
      "Fail unless launched on exactly N ranks");
  CLI::Option* const as_rank =
      add(run, "--as-rank", options.source.as_rank, "RANK",
          "Run this rank of --mesh alone, in one process, to measure its kernels and memory: what "
          "other ranks would send is made up, so losses are meaningless");
  add(run, "--json", options.json, "FILE", "Also write the results to a file");
  CLI::Option* const trace =
      add(run, "--trace", options.trace, "FILE",
          "Write when each rank was in which layer, pass and call, for Perfetto");
  add(run, "--trace-steps", options.trace_steps, "FIRST:LAST",
      fmt::format("Steps of this run to trace; default {}:{}", default_traced_steps.first,
                  default_traced_steps.second))
      ->delimiter(':')
      ->needs(trace)
      ->check(CLI::Range(Size{1}, Size{1} << 62).description(""));
  add(run, "--export", options.export_to, "DIR",
      "Also write the results to this directory, and as NumPy arrays samples (unseen ones if there "
      "are any) and the trained model's predictions for them")
      ->excludes(as_rank);
  CLI::Option* const resume =
      run.add_option_function<std::string>(
             "--resume", [&](const std::string& checkpoint) { options.resume = checkpoint; },
             "Resume from this checkpoint; without an argument, from the latest one in "
             "checkpoint.directory")
          ->type_name("[CHECKPOINT]")
          ->expected(0, 1)
          ->excludes(as_rank);
  run.add_flag("--resume-if-present", options.resume_if_present,
               "Resume from the latest checkpoint if there is one; for job scripts")
      ->excludes(resume)
      ->excludes(as_rank);
  add(run, "--until", options.until, "SECONDS",
      "Stop with a checkpoint at this time, in seconds since 1970: $((SLURM_JOB_END_TIME - 300))")
      ->check([](const std::string& text) {
        return number_of<Size>(text) ? "" : text + " must be a whole number of seconds";
      });
  add(run, "--machine", options.machine, "FILE",
      "Machine file: show which share of its peak the training reaches");
  add_progress(run, options.progress);
  run.add_flag("--quiet", options.quiet, "Print only warnings and errors");
  run.add_flag("--print-config", options.print_config,
               "Print the resolved configuration as TOML and exit");
  run.add_flag("--check-collectives", options.source.check_collectives,
               "Check before every collective that all ranks make the same call");
}

void add_plan(CLI::App& app, PlanOptions& options) {
  CLI::App& plan =
      *app.add_subcommand("plan", "Show memory, traffic and work of a run, without MPI");
  add_source(plan, options.source);
  add(plan, "--json", options.json, "FILE", "Also write the plan to a file");
  CLI::Option* const timeline =
      add(plan, "--timeline", options.timeline, "FILE",
          "Also write which memory each action of a step uses; tessera-report draws it");
  add(plan, "--timeline-rank", options.timeline_rank, "RANK",
      "Rank of the timeline; default: the first of those that need most memory")
      ->needs(timeline);
  CLI::Option* const chakra = add(plan, "--chakra", options.chakra, "DIR",
                                  "Also write the step as execution traces of MLCommons Chakra, a "
                                  "file per rank, for ASTRA-sim and other simulators");
  add(plan, "--chakra-ranks", options.chakra_ranks, "LIST",
      "Ranks whose traces are written, such as 0,4,8; default: all")
      ->delimiter(',')
      ->needs(chakra);
  add(plan, "--ranks,--ranks-expected", options.source.ranks_expected, "N",
      "Number of ranks to plan for");
  add(plan, "--machine", options.machine, "FILE",
      "Machine file: predict how long the step takes there (see inputs/machines)");
  plan.add_flag("--tensors", options.parts.tensors,
                "Also show every tensor: its global shape, PartitionSpec and local shapes");
  plan.add_flag("--calls", options.parts.calls,
                "Also show the calls of every rank by purpose, and the bytes of checkpoints");
  plan.add_flag("--schedule", options.parts.schedule,
                "Also show the actions of a step, and the timeline of a pipeline");
  add_progress(plan, options.progress);
  plan.add_flag("--advise", options.advises,
                "Search strategies, meshes, microbatches and recomputation for the fastest step "
                "on the machine, and show the best configurations");
}

void add_checkpoint(CLI::App& app, CheckpointOptions& options) {
  CLI::App& checkpoint =
      *app.add_subcommand("checkpoint", "Show, verify or export a checkpoint, without MPI");
  checkpoint.require_subcommand(1);
  const auto add_action = [&](CheckpointAction action, const char* what) {
    CLI::App& command = *checkpoint.add_subcommand(std::string(name_of(action)), what);
    add(command, "FILE", options.file, "", "Checkpoint (safetensors)")->required();
    command.callback([&options, action] { options.action = action; });
    return &command;
  };
  add_action(CheckpointAction::show, "Show the training state and every array");
  add_action(CheckpointAction::verify, "Compare every array with its checksum");
  CLI::App& save =
      *add_action(CheckpointAction::save_as, "Write the parameters to a file for other programs");
  save.add_option("--format", "Format: safetensors, which scripts/npz.py converts to npz")
      ->type_name("NAME")
      ->check([](const std::string& name) {
        return name == "safetensors" ? std::string()
                                     : "must be safetensors; scripts/npz.py converts that to npz";
      });
  add(save, "--names", options.names, choices<ExportNames>(),
      "Names of the arrays; pytorch: those of state_dict(), kernels transposed; huggingface: a "
      "directory for transformers, with config.json");
  add(save, "--dtype", options.dtype, "NAME",
      "Element type: " + join(export_types) + "; default: as in the checkpoint");
  add(save, "-o,--output", options.to, "FILE",
      "File to write; default: the checkpoint's name with that of --names");
  add(save, "--select", options.select, "NAME",
      "Only tensors whose names begin so, such as layer1/ or moment1/; default: the parameters");
}

void add_diff(CLI::App& app, DiffOptions& options) {
  CLI::App& diff =
      *app.add_subcommand("diff", "Compare two trainings by their hashes, without MPI");
  add(diff, "A", options.a, "", "File of output.hashes")->required();
  add(diff, "B", options.b, "", "That of the other training")->required();
}

const std::string hint = "; see tessera --help";

}  // namespace

Command parse_command_line(const std::vector<std::string>& arguments) {
  CLI::App app("Train neural networks sharded over a named mesh of MPI ranks", "tessera");
  app.set_version_flag("--version", "tessera " + std::string(version()));
  app.require_subcommand(0, 1);
  TrainOptions run;
  PlanOptions plan;
  add_run(app, run);
  add_plan(app, plan);
  CheckpointOptions checkpoint;
  add_checkpoint(app, checkpoint);
  DiffOptions diff;
  add_diff(app, diff);
  app.add_subcommand("info", "Show what this program was built with and what it runs on");
  app.footer(help_footer(examples, "", note));
  for (CLI::App* command : app.get_subcommands({}))
    command->footer(help_footer(examples, command->get_name(), note));

  std::vector<std::string> reversed = reversed_own_arguments(arguments);
  const bool for_kokkos = reversed.size() != arguments.size();
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, unused;
    if (app.exit(error, out, unused) == 0) return ShowText{out.str()};
    throw Error(ExitCode::usage,
                excerpt(one_line(error.what()), 300) + hint_for_arguments(app, arguments) + hint);
  }
  const std::vector<CLI::App*> commands = app.get_subcommands();
  const std::string name = commands.empty() ? "" : commands.front()->get_name();
  if (for_kokkos && (name == "plan" || name == "checkpoint" || name == "diff"))
    throw Error(ExitCode::usage,
                name + " does not start Kokkos and takes no --kokkos- arguments" + hint);
  if (plan.advises && (plan.parts.tensors || plan.parts.calls || plan.parts.schedule ||
                       !plan.timeline.empty() || !plan.chakra.empty()))
    throw Error(ExitCode::usage,
                "--advise compares plans and takes no --tensors, --calls, --schedule, --timeline "
                "or --chakra" +
                    hint);
  if (run.trace_steps.first > run.trace_steps.second)
    throw ConfigError("--trace-steps",
                      fmt::format("{}:{}", run.trace_steps.first, run.trace_steps.second),
                      "must not end before it begins");
  if (name == "run") return run;
  if (name == "plan") return plan;
  if (name == "checkpoint") return checkpoint;
  if (name == "diff") return diff;
  if (name == "info") return InfoOptions{};
  throw Error(ExitCode::usage, "a command is required: run, plan, checkpoint, diff or info" + hint);
}

}  // namespace tessera
