// SPDX-License-Identifier: Apache-2.0
#include "run/last_word.hpp"

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
namespace {

const char* status_for(ExitCode code) {
  switch (code) {
    case ExitCode::wrong_result:
      return "invalid";
    case ExitCode::out_of_memory:
      return "oom";
    case ExitCode::timeout:
      return "timeout";
    case ExitCode::skipped:
      return "skipped";
    default:
      return "failed";
  }
}

}  // namespace

LastWord::LastWord(const ResultsDirectory& results) : results_(results) {
  observe_abort([this](ExitCode code, const std::string& reason) { speak(code, reason); });
}

LastWord::~LastWord() { observe_abort({}); }

void LastWord::begin(nlohmann::json result, std::optional<double> case_seconds) {
  const std::lock_guard lock(mutex_);
  result_ = std::move(result);
  phase_ = "set-up";
  if (case_seconds)
    deadline_ = std::jthread(
        [this, limit = *case_seconds](const std::stop_token& is_over) { wait(is_over, limit); });
}

void LastWord::enter(std::string phase) {
  const std::lock_guard lock(mutex_);
  phase_ = std::move(phase);
}

void LastWord::end() {
  deadline_ = {};
  const std::lock_guard lock(mutex_);
  result_.reset();
}

void LastWord::wait(const std::stop_token& is_over, double case_seconds) {
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

void end_case(nlohmann::json& result, ExitCode code, const std::string& reason) {
  result["status"] = status_for(code);
  result["reason"] = one_line(reason);
  result["exit_code"] = static_cast<int>(code);
}

/// The watchdog gives its own code to what the study calls a time-out.
void LastWord::speak(ExitCode code, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (!result_) return;
  const bool stalled = code == ExitCode::timeout || reason.find("has waited") != std::string::npos;
  nlohmann::json& result = *result_;
  const bool is_kept = result.contains("status");
  end_case(result, stalled ? ExitCode::timeout : code,
           reason.empty() ? "the job was aborted" : reason);
  result["finished"] = utc_time();
  try {
    if (is_kept) results_.write_result(result);
    write_summary(results_);
  } catch (const std::exception& error) {
    log_from_this_rank(error.what());
  }
  print_result_line("FAIL", fmt::format("{}: {}; use --resume to run the other cases",
                                        result.at("id").get<std::string>(),
                                        result.at("status").get<std::string>()));
}

void print_result_line(const std::string& verdict, const std::string& text) {
  std::fputs(fmt::format("RESULT: {} {}\n", verdict, one_line(text)).c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace tessera::bench
