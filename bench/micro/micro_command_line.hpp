// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "micro/micro.hpp"

namespace tessera::bench {

struct MicroCommand {
  MicroOptions options{};
  std::string text{};  ///< asked for in place of a run: help
  std::string file{};  ///< --benchmark_out
  /// Google Benchmark's flags for this rank; only rank 0 writes a file.
  std::vector<std::string> google{};
};

/// Flags from the arguments or, as Google Benchmark has it, from the environment. That library ends
/// the process by itself over a bad value, behind MPI's back; so everything is checked here. Throws
/// Error (usage), the same on every rank, also for what would make ranks do different things.
MicroCommand parse_micro_command(const std::vector<std::string>& arguments, int rank, int ranks);

}  // namespace tessera::bench
