// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <csignal>
#include <thread>
#include <vector>

namespace tessera {

/// Records SIGTERM, SIGUSR1 and SIGINT during its life, so that they do not end the process.
/// Schedulers send them before the time of a job is over. Only one object may exist at a time, and
/// Kokkos must run.
///
/// No signal interrupts a computation, because oneDNN before 3.11 computes with the stack pointer:
/// the calling thread, the threads of Kokkos' host space and those that are started later block
/// them. They arrive in a thread of this object, or in one of a library, such as MPI's. A signal
/// that was ignored before stays ignored, as SIGINT is in a script's background jobs.
class StopSignals {
 public:
  /// `again` is called in a signal handler for each signal that arrives more than 0.3 s after the
  /// first. (Launchers may pass on one request twice.) By default it ends the process as if the
  /// signal were not handled. Throws std::system_error if no thread can be started.
  explicit StopSignals(void (*again)(int signal) = end_by);
  /// Restores the previous handlers and masks. Call it on the thread of the constructor.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Returns whether a signal has arrived.
  bool arrived() const;

 private:
  static void end_by(int signal);

  static constexpr std::array signals{SIGTERM, SIGUSR1, SIGINT};
  using Action = struct sigaction;
  std::array<Action, signals.size()> actions_{};
  struct Mask {
    sigset_t set{};  // its struct has no name, and nvcc 13 fails to compile a vector of it
  };
  std::vector<Mask> masks_;  ///< of each thread of the host space
  std::jthread receiver_;
};

}  // namespace tessera
