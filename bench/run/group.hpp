// SPDX-License-Identifier: Apache-2.0
// The ranks of a case, and what is left of it if the job ends.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <mpi.h>

#include <tessera/base/error.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/comm/detail/mpi_handle.hpp>
#include <tessera/process/outcome.hpp>

#include "results/journal.hpp"
#include "results/results_directory.hpp"
#include "study/study.hpp"

namespace tessera::bench {

/// The ranks of a case.
struct Group {
  Communicator ranks;
  MpiHandle raw;  ///< to agree on outcomes
};

/// Returns the first ranks of a communicator and, on the others, the rest. `raw` has the same
/// ranks; the job ends if one does not arrive in time. Collective.
Group first_ranks(const Communicator& all, MPI_Comm raw, Size ranks, const char* name,
                  const Site& site = Site::current());

/// Throws Error (timeout) on all ranks if one of them has used more seconds than a case may.
/// Collective.
void check_time(const Communicator& ranks, double seconds, const Limits& limits);

/// Runs `work` on the ranks of a group and returns its outcome, the same on all of them. Ends the
/// job if the ranks cannot agree, because others wait in a collective for this rank, which has
/// failed. Collective over the group.
Outcome run_on_group(const Group& group, const Limits& limits, const std::function<void()>& work);

/// Returns when every rank of `comm` has arrived. Waiting ranks sleep and leave the processors to
/// ranks that work. The job ends if the wait takes longer than any case may. Collective over
/// `comm`.
void sleep_until_all_arrive(const Limits& limits, MPI_Comm comm = MPI_COMM_WORLD,
                            const Site& site = Site::current());

/// Records the case that runs when the job is aborted. A rank that is stuck in a collective can
/// neither be waited for nor left behind, so the job has to end. Each rank has one of these; the
/// rank that ends the job writes the end of the round, to a journal of its own.
class AbortRecord {
 public:
  /// Observes aborts of the job, by the communicators' watchdog for example, while it lives.
  explicit AbortRecord(const ResultsDirectory& results);
  ~AbortRecord();
  AbortRecord(const AbortRecord&) = delete;
  AbortRecord& operator=(const AbortRecord&) = delete;

  /// Until end(), an abort completes and writes this line. Without a line, it names `id` only.
  /// With `case_seconds`, the job ends with exit code 4 if end() does not come within twice that
  /// time: the watchdog, which can name the missing ranks, comes first.
  void begin(std::string id, std::optional<End> line, std::optional<double> case_seconds);
  /// Names the phase of the case for messages: "warm-up".
  void enter(std::string phase);
  void end();

 private:
  void on_abort(ExitCode code, const std::string& reason);
  void wait(const std::stop_token& is_over, double case_seconds);

  const ResultsDirectory& results_;
  std::mutex mutex_;
  std::string id_;  ///< empty: nothing runs
  std::optional<End> line_;
  std::string phase_;
  std::jthread deadline_;
};

/// Prints the last line of a launch.
void print_result_line(const std::string& verdict, const std::string& text);

}  // namespace tessera::bench
