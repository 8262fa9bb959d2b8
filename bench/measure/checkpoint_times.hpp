// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>

namespace tessera::bench {

/// What checkpoints of a case cost: seconds of the slowest rank, medians over the checkpoints.
struct CheckpointTimes {
  Size checkpoints = 0;
  Size bytes = 0;              ///< of one, of all ranks
  double write_seconds = 0;    ///< spent on writing one
  double exposed_seconds = 0;  ///< of these, in which training stood still
  double read_seconds = 0;     ///< of what has just been written
  Size steps = 0;              ///< made while checkpoints were written
  double step_seconds = 0;     ///< of these; not a number if there are none
};

}  // namespace tessera::bench
