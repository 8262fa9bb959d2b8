// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>

namespace tessera::bench {

/// Costs of the checkpoints of a case: seconds on the slowest rank, medians over the checkpoints.
struct CheckpointTimes {
  Size checkpoints = 0;
  Size bytes = 0;              ///< per checkpoint, on all ranks together
  double write_seconds = 0;    ///< per checkpoint
  double exposed_seconds = 0;  ///< part of write_seconds in which no step ran
  double read_seconds = 0;     ///< to read back a checkpoint just written
  Size steps = 0;              ///< steps run while checkpoints were written
  double step_seconds = 0;     ///< median of these steps; NaN if there are none
};

}  // namespace tessera::bench
