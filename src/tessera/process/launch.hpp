// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace tessera {

/// Reads one environment variable; nullptr when unset.
using Environment = std::function<const char*(const char*)>;

/// What the job launcher says about this process, from its environment variables.
struct Launch {
  std::string variable;  ///< the one that told the size
  int size = 1;
  int rank = 0;
};

/// Open MPI, MPICH's Hydra, Flux, Slurm steps; none when started by hand.
std::optional<Launch> detect_launch(const Environment& environment);

/// Error (usage) if the launcher started several processes and each of them is a world of its own,
/// which happens when program and launcher belong to different MPI libraries.
void check_launch(const Launch& launch, int world_size);

}  // namespace tessera
