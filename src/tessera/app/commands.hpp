// SPDX-License-Identifier: Apache-2.0
// The commands of `tessera`: what each is given, and what answers it.
#pragma once

#include <string>

#include <tessera/base/runtime.hpp>
#include <tessera/config/config_source.hpp>

namespace tessera {

struct TrainOptions {
  ConfigSource source{};
  std::string json{};       ///< file for the results; empty: none
  std::string export_to{};  ///< directory for samples and predictions; empty: none
  bool quiet = false;
  bool print_config = false;  ///< print the resolved configuration and train nothing
};

/// `tessera run`: trains as the configuration says and reports on rank 0. Collective. Returns
/// wrong_result, on every rank, if one rank's traffic or memory was not what the plan says.
ExitCode run_command(Runtime& runtime, const TrainOptions& options);

struct PlanOptions {
  ConfigSource source{};
  std::string json{};     ///< file for the plan or the advice; empty: none
  std::string machine{};  ///< machine file; empty: no times are predicted
  bool advises = false;   ///< search for the best plan in place of showing one
};

/// `tessera plan`: prints the plan of a configuration's step, or of the best ones. Starts neither
/// MPI nor a device. The number of ranks is what the configuration asks for: a mesh without -1, or
/// world_size.
ExitCode plan_command(const PlanOptions& options);

struct InspectOptions {
  ConfigSource source{};
};

/// `tessera inspect`: shows, on rank 0, which part of every tensor each rank of this launch holds.
/// Collective.
ExitCode inspect_command(Runtime& runtime, const InspectOptions& options);

struct InfoOptions {};

/// `tessera info`: what this program was built with and runs on, printed by rank 0. Collective.
ExitCode info_command(Runtime& runtime);

}  // namespace tessera
