// SPDX-License-Identifier: Apache-2.0
// The watchdog of a process ends the job if a call waits for other ranks longer than its limit,
// from MPI_Init to MPI_Finalize. One line names the call, its axis and its call site.
//
// A thread times the calls of this process while there are any. Once the processes are linked, it
// asks the threads of all other ranks, which answer whatever their callers do, and the line also
// names the ranks that have not arrived. Of two ranks that ask at once the higher one gives way, so
// one rank reports and ends the job. Time in which the process was suspended does not count.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <mpi.h>

#include <tessera/base/site.hpp>
#include <tessera/process/wait_limit.hpp>

namespace tessera {

/// Lets the watchdogs of all processes ask each other until MPI ends. Only the first call does
/// anything. Collective over `world`, which has the ranks of MPI_COMM_WORLD in the same order. They
/// stay apart without MPI_THREAD_MULTIPLE.
void link_watchdogs(MPI_Comm world, const Site& site);

/// The ranks of a communicator that the watchdog knows, as long as this object lives.
class WatchedGroup {
 public:
  /// Collective over `comm`. The watchdogs are linked.
  WatchedGroup(MPI_Comm comm, const std::string& axis, const Site& site);
  ~WatchedGroup();
  WatchedGroup(const WatchedGroup&) = delete;
  WatchedGroup& operator=(const WatchedGroup&) = delete;

 private:
  friend class Watchdog;
  explicit WatchedGroup(int world_size);  ///< all ranks, at their end

  std::uint64_t id_ = 0;  ///< the same on all its ranks, unique in the job
  std::string axis_;
  std::vector<int> world_ranks_;  ///< the world rank of each of its ranks
  std::uint64_t calls_ = 0;       ///< number of collective calls that this process has begun
  std::string_view latest_;       ///< the last collective call
};

/// Returns the call of a process that waits for the end of all ranks, for at most `seconds`.
WatchedCall end_of_all_ranks(double seconds, const Site& site = Site::current());

}  // namespace tessera
