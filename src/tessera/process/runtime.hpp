// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/process/blas_check.hpp>
#include <tessera/process/outcome.hpp>

namespace tessera {

/// Starts MPI and Kokkos, and ends them in its destructor. It uses and leaves alone what the caller
/// has initialized.
///
/// Collective over all ranks. Throws Error (usage), the same on every rank, if MPI has been
/// finalized, if launcher and MPI disagree on the number of ranks, if ranks would share a GPU, or
/// if Kokkos cannot start. Rank 0 warns of slow BLAS kernels and of threads that share cores.
class Runtime {
 public:
  /// Removes the arguments of MPI and Kokkos (--kokkos-...) from argv.
  Runtime(int& argc, char**& argv);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  int world_rank() const;
  int world_size() const;
  /// The number of the rank among those of its node, from 0.
  int local_rank() const;
  const BlasStatus& blas() const;
  const std::vector<std::string>& arguments() const;  ///< argv before the removal

  /// Throws the same Error (usage) on every rank if a rank has other arguments than rank 0. Those
  /// of Kokkos may differ, because they choose GPUs. Collective.
  void check_same_arguments() const;
  /// Returns the outcome on which all ranks agree (first_failure() of agreement.hpp), with the rank
  /// that failed. Collective.
  Outcome agree(const Outcome& mine, double grace_seconds) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Ends every process of the job with this code, from any thread, without clean-up. `reason` goes
/// to the observer; the caller has logged it.
[[noreturn]] void abort_job(ExitCode code, const std::string& reason = "");

/// Called once by abort_job, on its thread, so that a program can write an abort record. It must
/// neither throw nor communicate. A new observer replaces the old one; {} removes it.
using AbortObserver = std::function<void(ExitCode code, const std::string& reason)>;
void observe_abort(AbortObserver observer);

}  // namespace tessera
