// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace tessera {

/// Records SIGTERM and SIGUSR1 during its life, so that they do not end the process. Schedulers
/// send them before the time of a job is over. Only one object may exist at a time.
class StopSignals {
 public:
  StopSignals();
  /// Restores the previous handlers.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Returns whether a signal has arrived.
  bool arrived() const;

 private:
  using Action = struct sigaction;
  Action term_{}, usr1_{};
};

}  // namespace tessera
