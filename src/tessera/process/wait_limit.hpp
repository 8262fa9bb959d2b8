// SPDX-License-Identifier: Apache-2.0
// How long a rank waits for others where it cannot ask what they are doing: while MPI starts, while
// communicators of all ranks are made, and at the end.
#pragma once

#include <memory>
#include <string>

#include <tessera/base/site.hpp>

namespace tessera {

/// Thirty years; the clocks take no more.
inline constexpr double longest_timeout_seconds = 1e9;

/// Seconds that a rank waits for others unless it is told otherwise: TESSERA_TIMEOUT_SECONDS if
/// that is valid, else 300.
double default_timeout_seconds();

/// Throws ConfigError if TESSERA_TIMEOUT_SECONDS is not a number, more than 0 and at most
/// longest_timeout_seconds.
void check_timeout_variable();

/// The limit that this process was told last; until then the default. 0: none.
double timeout_seconds();
void set_timeout_seconds(double seconds);

/// Ends the job with ExitCode::communication and one line if it lives longer than `seconds`; 0:
/// never. A thread of its own looks at the clock, and needs nothing of MPI. Time during which the
/// whole process was suspended does not count. There is no limit if the thread cannot be started.
class WaitLimit {
 public:
  /// `what` waits for other ranks: "MPI_Init_thread".
  WaitLimit(std::string what, double seconds, const Site& site = Site::current());
  ~WaitLimit();
  WaitLimit(const WaitLimit&) = delete;
  WaitLimit& operator=(const WaitLimit&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
