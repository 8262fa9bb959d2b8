// SPDX-License-Identifier: Apache-2.0
// Jobs for a cluster's scheduler: which cases each of them runs, with what, and for how long.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/base/error.hpp>

#include "run/job_time.hpp"
#include "study/study.hpp"

namespace tessera::bench {

struct JobsOptions {
  StudySource source{};
  std::string scheduler{};
  std::string directory{};
  std::string machine{};                 ///< a machine file; none if empty
  std::optional<Size> ranks_per_node{};  ///< otherwise those of the machine, or of the study
  Size threads = 1;                      ///< of a rank, for cases that do not say
  bool per_case = false;                 ///< a job for each case, not for each number of ranks
  double safety = TimeSource{}.safety;
  std::optional<Size> max_minutes{};  ///< of a job
  Size give_up = 1;                   ///< launches that may end in a case
  std::string template_file{};        ///< that of the scheduler if empty
};

/// What one job runs. Its launch has exactly the ranks and threads that its cases need.
struct Job {
  std::string name;  ///< "ranks-8", "ranks-8-threads-2", or the id of its only case
  Size ranks = 1;
  Size threads = 1;
  std::vector<const Case*> cases;
};

/// The cases that are not skipped, by what launch they need; jobs with few ranks first.
std::vector<Job> make_jobs(const std::vector<Case>& cases, const JobsOptions& options);

/// Writes a script for each job, what they share and submit.sh to the directory, which must be
/// empty or new; prints what each job asks for. The jobs write results to `results` in there.
/// Throws ConfigError for bad options.
ExitCode write_jobs(const JobsOptions& options);

}  // namespace tessera::bench
