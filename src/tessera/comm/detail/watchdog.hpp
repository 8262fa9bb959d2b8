// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <mpi.h>

#include <tessera/base/site.hpp>
#include <tessera/comm/detail/call_board.hpp>

namespace tessera {

/// A communicator as the watchdog knows it.
struct WatchedGroup {
  std::uint64_t id = 0;  ///< the same on all its ranks
  std::string axis;
  std::vector<int> world_ranks;  ///< of its ranks, in their order

  void arrive(std::uint64_t sequence, Operation operation) noexcept {
    latest_.store(sequence << 8 | static_cast<std::uint64_t>(operation), std::memory_order_relaxed);
  }
  /// Number of the latest collective call that this process has started, times 256, plus Operation.
  std::uint64_t latest() const noexcept { return latest_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> latest_{0};
};

/// Ends the job when a call lasts longer than the timeout, with one line that names operation,
/// axis, call site, and the ranks that have not arrived with what they are doing instead.
///
/// One thread per process watches what the calling thread has published. When its call is overdue,
/// it asks the threads of the other ranks of that communicator, which answer at once, however busy
/// or stuck their own callers are; a process that does not answer is named as such. One rank
/// prints, and aborts with ExitCode::communication.
///
/// The thread needs MPI_THREAD_MULTIPLE to ask. Without it each rank speaks for itself only.
/// Time during which the whole process was suspended does not count.
class Watchdog {
 public:
  /// Collective over `world`, which must be congruent with MPI_COMM_WORLD. timeout_seconds > 0.
  Watchdog(MPI_Comm world, double timeout_seconds, const Site& site);
  /// Stops the thread; so does MPI_Finalize.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// The group is watched as long as the result lives.
  std::shared_ptr<WatchedGroup> watch(std::uint64_t id, std::string axis,
                                      std::vector<int> world_ranks);

  void enter(const CallNote& note) noexcept { board_.enter(note); }
  void leave() noexcept { board_.leave(); }

 private:
  class Monitor;
  CallBoard board_;
  std::unique_ptr<Monitor> monitor_;
};

}  // namespace tessera
