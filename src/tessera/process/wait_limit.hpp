// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

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

class WatchedGroup;

/// A call that may wait for other ranks.
struct WatchedCall {
  std::string_view what;  ///< "all_reduce"; it outlives the call
  Site site{};
  double limit = 0;               ///< seconds; the watchdog ignores a call without a limit
  WatchedGroup* group = nullptr;  ///< the ranks that make the call; null if it is unknown
  int peer = -1;                  ///< of a message: the other rank, in the group
  int tag = 0;                    ///< of a message
  bool waiting = false;           ///< waits for a request, whose call has its number already
  std::uint64_t number = 0;       ///< of a collective call among those of the group
};

/// The watchdog (watchdog.hpp) ends the job with ExitCode::communication and one line if this
/// object lives longer than the limit of its call; 0 means never.
class WaitLimit {
 public:
  /// `what` names the call that waits for other ranks, such as "MPI_Init_thread".
  WaitLimit(std::string_view what, double seconds, const Site& site = Site::current());
  explicit WaitLimit(const WatchedCall& call);
  ~WaitLimit();
  WaitLimit(const WaitLimit&) = delete;
  WaitLimit& operator=(const WaitLimit&) = delete;

  const WatchedCall& call() const { return call_; }

 private:
  WatchedCall call_;
};

}  // namespace tessera
