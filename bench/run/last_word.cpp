// SPDX-License-Identifier: Apache-2.0
#include "run/last_word.hpp"

#include <chrono>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/log.hpp>
#include <tessera/base/provenance.hpp>
#include <tessera/base/runtime.hpp>
#include <tessera/base/text.hpp>

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

void LastWord::begin(nlohmann::json result) {
  const std::lock_guard lock(mutex_);
  result_ = std::move(result);
  phase_ = "set-up";
}

void LastWord::enter(std::string phase) {
  const std::lock_guard lock(mutex_);
  phase_ = std::move(phase);
}

std::string LastWord::phase() const {
  const std::lock_guard lock(mutex_);
  return phase_;
}

void LastWord::end() {
  const std::lock_guard lock(mutex_);
  result_.reset();
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
  end_case(result, stalled ? ExitCode::timeout : code,
           reason.empty() ? "the job was aborted" : reason);
  result["finished"] = utc_time();
  try {
    results_.write_result(result.at("id"), result);
    write_summary(results_);
  } catch (const std::exception& error) {
    log_from_this_rank(error.what());
  }
  print_result_line("FAIL", fmt::format("{}: {}; use --resume to run the other cases",
                                        result.at("id").get<std::string>(),
                                        result.at("status").get<std::string>()));
}

Deadline::Deadline(double seconds, const LastWord& word, double limit_to_name)
    : thread_([this, seconds, limit_to_name, &word] {
        std::unique_lock lock(mutex_);
        const auto limit = std::chrono::duration<double>(std::min(seconds, 1e8));
        if (wake_.wait_for(lock, limit, [this] { return is_over_; })) return;
        const std::string reason =
            fmt::format("still in its {} after {:.0f} s; the limit is {:g} s", word.phase(),
                        seconds, limit_to_name);
        log_error(reason);
        abort_job(ExitCode::timeout, reason);
      }) {}

Deadline::~Deadline() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void print_result_line(const std::string& verdict, const std::string& text) {
  std::fputs(fmt::format("RESULT: {} {}\n", verdict, one_line(text)).c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace tessera::bench
