// SPDX-License-Identifier: Apache-2.0
// A study on a machine that is only described: the plans of its cases with predicted times.
#pragma once

#include <string>

#include <tessera/base/error.hpp>

#include "study/study.hpp"

namespace tessera::bench {

struct SimulateOptions {
  StudySource source{};
  std::string directory{};
  std::string machine{};  ///< a machine file
  std::vector<std::string> arguments{};
};

/// Writes the files that a run of the study writes, each case marked with the machine in
/// "simulated". Needs neither MPI nor a device, and no case takes longer on more ranks than its
/// plan. Cases that need more memory than the machine's ranks have are "oom". Throws like
/// load_study() and load_machine(), and ConfigError for a directory that holds results.
ExitCode simulate_study(const SimulateOptions& options);

}  // namespace tessera::bench
