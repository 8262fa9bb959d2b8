// SPDX-License-Identifier: Apache-2.0
#include "run/abort_record.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/provenance.hpp>
#include <tessera/process/runtime.hpp>

#include "results/summary.hpp"

namespace tessera::bench {
AbortRecord::AbortRecord(const ResultsDirectory& results) : results_(results) {
  observe_abort([this](ExitCode code, const std::string& reason) { on_abort(code, reason); });
}

AbortRecord::~AbortRecord() { observe_abort({}); }

void AbortRecord::begin(std::string id, std::optional<CaseResult> result,
                        std::optional<double> case_seconds) {
  const std::lock_guard lock(mutex_);
  id_ = std::move(id);
  result_ = std::move(result);
  phase_ = "set-up";
  if (case_seconds)
    deadline_ = std::jthread(
        [this, limit = *case_seconds](const std::stop_token& is_over) { wait(is_over, limit); });
}

void AbortRecord::enter(std::string phase) {
  const std::lock_guard lock(mutex_);
  phase_ = std::move(phase);
}

void AbortRecord::end() {
  deadline_ = {};
  const std::lock_guard lock(mutex_);
  id_.clear();
}

void AbortRecord::wait(const std::stop_token& is_over, double case_seconds) {
  const double seconds = std::min(2 * case_seconds + 5, 1e8);
  std::string reason;
  {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, is_over, std::chrono::duration<double>(seconds), [] { return false; });
    if (is_over.stop_requested()) return;
    reason = fmt::format("still in its {} after {:.0f} s; the limit is {:g} s", phase_, seconds,
                         case_seconds);
  }
  log_error(reason);
  abort_job(ExitCode::timeout, reason);
}

void AbortRecord::on_abort(ExitCode code, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (id_.empty()) return;
  // The watchdog has an exit code of its own for a stalled rank.
  const bool stalled = code == ExitCode::timeout || reason.find("has waited") != std::string::npos;
  const ExitCode ended = stalled ? ExitCode::timeout : code;
  try {
    if (result_) {
      result_->end(ended, reason.empty() ? "the job was aborted" : reason);
      result_->finished = utc_time();
      results_.write_result(*result_);
    }
    write_summary(results_);
  } catch (const std::exception& error) {
    log_from_this_rank(error.what());
  }
  print_result_line(
      "FAIL", fmt::format("{}: {}; use --resume to run the other cases", id_, status_for(ended)));
}

void print_result_line(const std::string& verdict, const std::string& text) {
  std::fputs(fmt::format("RESULT: {} {}\n", verdict, one_line(text)).c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace tessera::bench
