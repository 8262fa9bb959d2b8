// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <thread>

#include <tessera/base/site.hpp>

namespace tessera {

/// Thirty years. Clocks overflow beyond this.
inline constexpr double longest_timeout_seconds = 1e9;

/// Returns TESSERA_TIMEOUT_SECONDS if it is valid, else 300.
double default_timeout_seconds();

/// Throws ConfigError if TESSERA_TIMEOUT_SECONDS is set and is not a number above 0 and at most
/// longest_timeout_seconds.
void check_timeout_variable();

/// The time for which a rank waits for others. Returns what was set last, else the default. 0 means
/// no limit.
double timeout_seconds();
void set_timeout_seconds(double seconds);

/// Ends the job with ExitCode::communication and one line if this object lives longer than
/// `seconds`; 0 means never. It guards waits in which the watchdog of `comm` does not run yet, or
/// no longer: while MPI starts, while communicators of all ranks are made, and at the end. Its
/// thread does not call MPI. Time in which the process was suspended does not count. There is no
/// limit if the thread cannot be started.
class WaitLimit {
 public:
  /// `what` names the call that waits for other ranks, such as "MPI_Init_thread".
  WaitLimit(const std::string& what, double seconds, const Site& site = Site::current());

 private:
  std::jthread watcher_;  ///< its destructor stops it
};

}  // namespace tessera
