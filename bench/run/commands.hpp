// SPDX-License-Identifier: Apache-2.0
// The commands of tessera-bench that run, predict or plan cases, and their options.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/process/runtime.hpp>

#include "study/study.hpp"

namespace tessera::bench {

/// The fault that --inject plants on one rank of every case, which shows how a study copes with it.
struct Fault {
  enum class Kind { throws, stalls };
  Kind kind = Kind::throws;
  int rank = 0;
};

struct RunOptions {
  StudySource source{};
  std::string directory{};
  std::vector<std::string> only{};   ///< ids of the cases to run; empty: all
  bool resume = false;               ///< continue with the present results
  std::vector<std::string> retry{};  ///< statuses of cases to rerun
  std::optional<Size> give_up{};     ///< once so many launches have ended during a case
  std::string machine{};             ///< machine file to predict by; empty: measure the machine
  bool dry_run = false;
  bool figures_of_merit = false;  ///< print them, too
  bool traces = false;            ///< keep the traces of the instrumented steps
  std::optional<Fault> fault{};
};

/// Runs the cases of a study that have no result yet and that this launch has enough ranks for. A
/// case that fails is recorded, and the next one runs; the job ends early only if a rank is stuck.
/// Collective over all ranks of the job.
ExitCode run_study(Runtime& runtime, const RunOptions& options);

/// Prints the cases that run_study() would run. Needs neither MPI nor a device.
ExitCode show_selection(const RunOptions& options, Size ranks);

struct SimulateOptions {
  StudySource source{};
  std::string directory{};
  std::string machine{};  ///< a machine file
  std::vector<std::string> arguments{};
};

/// Writes the files that a run of the study writes, with predicted times and the machine in
/// "simulated" of each case. Needs neither MPI nor a device. Cases that need more memory than a
/// rank has are "oom". Throws like load_study() and load_machine(), and ConfigError for a directory
/// that holds results.
ExitCode simulate_study(const SimulateOptions& options);

struct CalibrateOptions {
  std::string output{};  ///< machine file; its name is the machine's
  Size gemm_size = peak_gemm_size;
};

/// Measures the launch's ranks and writes a machine file for `simulate` and `tessera plan
/// --machine`. Throws Error (usage) on all ranks for a single rank, which has no links, for nodes
/// with different numbers of ranks, and for a file that exists or cannot be written. Collective.
ExitCode calibrate_machine(const CalibrateOptions& options);

struct JobsOptions {
  StudySource source{};
  std::string scheduler{};
  std::string directory{};
  std::optional<Size> ranks_per_node{};  ///< default: the study's
  bool gpus = false;                     ///< a GPU for each rank
  Size threads = 1;                      ///< per rank, for cases that do not set them
  bool per_case = false;                 ///< a job per case instead of per number of ranks
  std::optional<Size> max_minutes{};     ///< longest time limit of a job
  Size give_up = 1;                      ///< launches that may end during a case
  std::string template_file{};           ///< empty: the scheduler's
};

/// Writes a script for each job, until_done.sh and submit.sh to the directory, which must be empty
/// or new, and prints the resources of each job. The jobs write to `results` in the directory.
/// Throws ConfigError for bad options.
ExitCode write_jobs(const JobsOptions& options);

}  // namespace tessera::bench

template <>
inline constexpr std::array<std::string_view, 2> tessera::names_of<tessera::bench::Fault::Kind>{
    "throw", "stall"};
