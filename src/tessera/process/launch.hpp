// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace tessera {

/// Reads an environment variable; returns nullptr if it is not set.
using Environment = std::function<const char*(const char*)>;

/// The place of this process in its launch, from the environment variables of the launcher.
struct Launch {
  std::string variable;  ///< from which the size was read
  int size = 1;
  int rank = 0;
};

/// Knows Open MPI, MPICH's Hydra, Flux and Slurm steps. Returns nothing for a process that was
/// started by hand.
std::optional<Launch> detect_launch(const Environment& environment);

/// Throws Error (usage) if the launcher started several processes and each of them is a world of
/// its own. This happens if program and launcher belong to different MPI libraries.
void check_launch(const Launch& launch, int world_size);

}  // namespace tessera
