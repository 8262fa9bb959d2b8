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
  int size = 1;          ///< at least, if the launcher tells the ranks of a node only
  int rank = 0;
};

/// Knows Open MPI, MVAPICH, MPICH's Hydra, PALS, JSM, Flux, Slurm steps and torchrun. Returns
/// nothing for a process that was started by hand.
std::optional<Launch> detect_launch(const Environment& environment);

}  // namespace tessera
