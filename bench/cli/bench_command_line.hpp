// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include <tessera/process/run_main.hpp>

#include "run/commands.hpp"

namespace tessera::bench {

struct CompareOptions {
  std::string before;
  std::string after;
  std::string json;  ///< a file for the comparison, if it is not empty
};

using Command = std::variant<ShowText, StudySource, RunOptions, SimulateOptions, CalibrateOptions,
                             JobsOptions, CompareOptions>;

/// The command that the arguments after the program's name ask for; `list` is its study alone.
/// Sets the mode of progress. Arguments that begin with --kokkos- are left to Kokkos. Throws Error
/// with exit code usage.
Command parse_command_line(const std::vector<std::string>& arguments);

/// "throw@2", "stall@0". Throws ConfigError for other texts.
Fault parse_fault(const std::string& text);

}  // namespace tessera::bench
