// SPDX-License-Identifier: Apache-2.0
// Jobs for a cluster's scheduler.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/base/error.hpp>

#include "run/predicted_time.hpp"
#include "study/study.hpp"

namespace tessera::bench {

struct JobsOptions {
  StudySource source{};
  std::string scheduler{};
  std::string directory{};
  std::string machine{};                 ///< a machine file; none if empty
  std::optional<Size> ranks_per_node{};  ///< default: the machine's, or the study's
  Size threads = 1;                      ///< per rank, for cases that do not set them
  bool per_case = false;                 ///< a job per case instead of per number of ranks
  double safety = TimeSource{}.safety;
  std::optional<Size> max_minutes{};  ///< longest time limit of a job
  Size give_up = 1;                   ///< launches that may end during a case
  std::string template_file{};        ///< empty: the scheduler's
};

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

/// Writes a script for each job, until_done.sh and submit.sh to the directory, which must be empty
/// or new, and prints the resources of each job. The jobs write to `results` in the directory.
/// Throws ConfigError for bad options.
ExitCode write_jobs(const JobsOptions& options);

}  // namespace tessera::bench
