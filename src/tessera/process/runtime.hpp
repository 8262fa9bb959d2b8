// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/process/blas_check.hpp>
#include <tessera/process/outcome.hpp>

namespace tessera {

/// MPI and Kokkos for as long as it lives. Construct it first in main, before anything that must
/// not happen twice. What the caller has initialised itself is used and left alone.
///
/// Collective over all ranks. Error (usage), the same on every rank, if one lives already, if MPI
/// is finished, if launcher and MPI disagree on the number of ranks, if ranks would share a GPU, or
/// if Kokkos cannot start.
class Runtime {
 public:
  /// Removes the arguments that MPI and Kokkos (--kokkos-...) take.
  Runtime(int& argc, char**& argv);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  int world_rank() const;
  int world_size() const;
  /// What MPI granted: "single", "funneled", "serialized" or "multiple".
  const char* thread_level() const;
  std::optional<int> device() const;  ///< GPU given to Kokkos; none without CUDA
  const BlasStatus& blas() const;
  const std::vector<std::string>& arguments() const;  ///< argv as it was

  /// agree_on_outcome (agreement.hpp) over all ranks, on a communicator of its own.
  std::optional<Outcome> agree(const Outcome& mine, double grace_seconds) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Ends every process of the job with this code, from any thread, without clean-up. `reason` is for
/// the observer; it has been logged already.
[[noreturn]] void abort_job(ExitCode code, const std::string& reason = "");

/// Called by abort_job first, once, on whichever thread calls it: a program's chance to write down
/// why it ends. It must not throw, and not communicate. Replaces the observer before; none: {}.
using AbortObserver = std::function<void(ExitCode code, const std::string& reason)>;
void observe_abort(AbortObserver observer);

}  // namespace tessera
