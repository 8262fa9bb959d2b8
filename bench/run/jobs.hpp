// SPDX-License-Identifier: Apache-2.0
// Jobs for a cluster's scheduler, and their scripts, made from templates.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "run/commands.hpp"
#include "run/reference_plan.hpp"

namespace tessera::bench {

/// A scheduler that has a template.
struct JobScheduler {
  const char* name;
  const char* submit;  ///< the command that submits a script
  /// Options of the job and of the launcher that request a GPU per rank. {} stands for the number
  /// of GPUs on a node.
  const char* gpus;
  const char* launcher_gpus;
};
/// Slurm and PBS give all ranks of a node its GPUs, because binding one to each rank would keep
/// them from each other's memory.
inline constexpr JobScheduler schedulers[] = {
    {"slurm", "sbatch", "\n#SBATCH --gpus-per-node={}", ""},
    {"flux", "flux batch", "\n# flux: --gpus-per-slot=1", " --gpus-per-task=1 -o gpu-affinity=off"},
    {"pbs", "qsub", ":ngpus={}", ""}};

/// A job, whose launch has exactly the ranks and threads that its cases need.
struct Job {
  std::string name;  ///< "ranks-8", "ranks-8-threads-2", or the id of its only case
  Size ranks = 1;
  Size threads = 1;
  std::vector<const Case*> cases;
};

/// Groups the cases that are not skipped by the launch that they need. Jobs with fewer ranks come
/// first.
std::vector<Job> make_jobs(const std::vector<Case>& cases, const JobsOptions& options);

/// Replaces the characters that names of jobs and launches may not have by underscores.
std::string word_of(std::string text);

/// Quotes `text` as one word of the shell.
std::string shell_word(const std::string& text);

/// Replaces @key@ in the template by the value of each key. `name` is the template's name in
/// messages. Throws ConfigError with the line of an unknown placeholder, and if @run@ is missing.
std::string fill_template(std::string text, const std::string& name,
                          const std::map<std::string, std::string>& values);

/// Returns the text of a file of scripts/jobs, which is compiled in so that an installed program
/// has it.
std::string_view job_file(const std::string& name);

}  // namespace tessera::bench
