// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace tessera {

/// While one lives, SIGTERM and SIGUSR1, which schedulers send before a job's time is over, do not
/// end the process: they are remembered. One at a time.
class StopSignals {
 public:
  StopSignals();
  /// What the signals did before.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Whether one has arrived.
  bool arrived() const;

 private:
  using Action = struct sigaction;
  Action term_{}, usr1_{};
};

}  // namespace tessera
