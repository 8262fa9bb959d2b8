// SPDX-License-Identifier: Apache-2.0
// The command simulate.
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

/// Writes the files that a run of the study writes, with predicted times and the machine in
/// "simulated" of each case. Needs neither MPI nor a device. Cases that need more memory than a
/// rank has are "oom". Throws like load_study() and load_machine(), and ConfigError for a directory
/// that holds results.
ExitCode simulate_study(const SimulateOptions& options);

}  // namespace tessera::bench
