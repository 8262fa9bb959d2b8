// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <tessera/base/error.hpp>

#include "results/results_directory.hpp"

namespace tessera::bench {

/// Records the case that runs when the job is aborted. A rank that is stuck in a collective can
/// neither be waited for nor left behind, so the job has to end. Each rank has one of these; the
/// rank that ends the job writes the result.
class AbortRecord {
 public:
  /// Observes aborts of the job, by the communicators' watchdog for example, while it lives.
  explicit AbortRecord(const ResultsDirectory& results);
  ~AbortRecord();
  AbortRecord(const AbortRecord&) = delete;
  AbortRecord& operator=(const AbortRecord&) = delete;

  /// Until end(), an abort completes and writes this result. Without a result, it names `id` only.
  /// With `case_seconds`, the job ends with exit code 4 if end() does not come within twice that
  /// time: the watchdog, which can name the missing ranks, comes first.
  void begin(std::string id, std::optional<CaseResult> result, std::optional<double> case_seconds);
  /// Names the phase of the case for messages: "warm-up".
  void enter(std::string phase);
  void end();

 private:
  void on_abort(ExitCode code, const std::string& reason);
  void wait(const std::stop_token& is_over, double case_seconds);

  const ResultsDirectory& results_;
  std::mutex mutex_;
  std::string id_;  ///< empty: nothing runs
  std::optional<CaseResult> result_;
  std::string phase_;
  std::condition_variable_any wake_;
  std::jthread deadline_;
};

/// Prints the last line of a launch.
void print_result_line(const std::string& verdict, const std::string& text);

}  // namespace tessera::bench
