// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "document/document.hpp"

namespace tessera::bench {

/// Costs of the checkpoints of a case: seconds on the slowest rank, medians over the checkpoints.
struct CheckpointTimes {
  std::string directory;
  bool async = false;
  Size checkpoints = 0;
  Size bytes = 0;              ///< per checkpoint, on all ranks together
  double write_seconds = 0;    ///< per checkpoint
  double exposed_seconds = 0;  ///< part of write_seconds in which no step ran
  double read_seconds = 0;     ///< to read back a checkpoint just written
  Size steps_while_writing = 0;
  double step_seconds_while_writing = 0;  ///< median of these steps; NaN if there are none

  double write_bytes_per_second() const { return static_cast<double>(bytes) / write_seconds; }
  double read_bytes_per_second() const { return static_cast<double>(bytes) / read_seconds; }

  static void fields(auto& f, auto& v) {
    f("directory", v.directory, "async", v.async, "checkpoints", v.checkpoints, "bytes", v.bytes,
      "write_seconds", positive(v.write_seconds), "write_bytes_per_second",
      written(v.write_bytes_per_second()), "exposed_seconds", v.exposed_seconds,
      "steps_while_writing", v.steps_while_writing, "step_seconds_while_writing",
      v.step_seconds_while_writing, "read_seconds", positive(v.read_seconds),
      "read_bytes_per_second", written(v.read_bytes_per_second()));
  }
};

}  // namespace tessera::bench
