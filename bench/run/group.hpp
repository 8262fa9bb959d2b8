// SPDX-License-Identifier: Apache-2.0
// The ranks of a case, and what is left of it if the job ends.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include <mpi.h>

#include <tessera/base/error.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/comm/detail/mpi_handle.hpp>
#include <tessera/process/outcome.hpp>

#include "results/journal.hpp"
#include "results/results_directory.hpp"
#include "study/study.hpp"

namespace tessera::bench {

/// The first ranks of the job, which run a case. On the other ranks, those that it leaves out.
struct Group {
  Size size = 0;  ///< of the first ranks, also on the others
  Communicator ranks;
  MpiHandle raw;  ///< to agree on outcomes
};

/// Splits a communicator of all ranks. The job ends if a rank does not arrive in time. Collective.
Group first_ranks(const Communicator& all, Size size, const char* name,
                  const Site& site = Site::current());

/// Throws Error (timeout) on all ranks if one of them has used more seconds than a case may.
/// Collective.
void check_time(const Communicator& ranks, double seconds, const Limits& limits);

/// Returns when every rank of the job has arrived. Waiting ranks sleep and leave the processors to
/// ranks that work. The job ends if the wait takes longer than any case may. Collective.
void sleep_until_all_arrive(const Limits& limits, const Site& site = Site::current());

/// Runs cases and references, and records the one that runs when the job is aborted. A rank that is
/// stuck in a collective can neither be waited for nor left behind, so the job has to end. Each
/// rank has one of these; the rank that ends the job writes the end of the round, to a journal of
/// its own.
class AbortRecord {
 public:
  /// Observes aborts of the job, by the communicators' watchdog for example, while it lives.
  AbortRecord(const ResultsDirectory& results, const Limits& limits);
  ~AbortRecord();
  AbortRecord(const AbortRecord&) = delete;
  AbortRecord& operator=(const AbortRecord&) = delete;

  /// Runs `work` on the ranks of a group while the others sleep. Returns its outcome, the same on
  /// all ranks of the group. Meanwhile an abort completes and writes `line` if it has the result of
  /// a case. Ends the job if the ranks cannot agree, because others wait in a collective for this
  /// rank, which has failed. After twice the time that a case may take the watchdog ends the job;
  /// that of a call comes first, and names the missing ranks. Collective over the job.
  Outcome run(const Group& group, const End& line, const std::function<void()>& work);
  /// Names the phase of the case for messages: "warm-up".
  void enter(std::string phase);

 private:
  void on_abort(ExitCode code, const std::string& reason);

  const ResultsDirectory& results_;
  const Limits& limits_;
  std::mutex mutex_;
  std::optional<End> line_;  ///< of what runs
  std::string phase_;
};

/// Prints the last line of a launch.
void print_result_line(const std::string& verdict, const std::string& text);

}  // namespace tessera::bench
