// SPDX-License-Identifier: Apache-2.0
#include "run/group.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/process/agreement.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/provenance.hpp>
#include <tessera/process/runtime.hpp>
#include <tessera/process/wait_limit.hpp>

#include "results/summary.hpp"

namespace tessera::bench {
namespace {

/// Seconds that a rank with an error waits for ranks that may be stuck in a collective. It is
/// shorter than the time limit of the watchdog, whose message would hide the cause.
double grace_seconds(const Limits& limits) { return std::min(10.0, limits.case_seconds / 2); }

/// Seconds after which ranks that a case leaves out end the job.
double longest_run(double case_seconds) { return 2 * case_seconds + 60; }

}  // namespace

Group first_ranks(const Communicator& all, Size size, const char* name, const Site& site) {
  const int color = all.rank() < size ? 0 : 1;
  Communicator part = all.split(color, all.rank(), name, site);
  const WaitLimit limit("a split", timeout_seconds(), site);
  return {size, std::move(part), MpiHandle::split(MPI_COMM_WORLD, color, all.rank(), site)};
}

void check_time(const Communicator& ranks, double seconds, const Limits& limits) {
  collectively(ranks, [&] {
    if (seconds > limits.case_seconds)
      throw Error(ExitCode::timeout, "took longer than the limit of {:g} s", limits.case_seconds);
  });
}

void sleep_until_all_arrive(const Limits& limits, const Site& site) {
  using namespace std::chrono_literals;
  const WaitLimit limit("a rank that has nothing to do", longest_run(limits.case_seconds), site);
  MPI_Request arrived = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &arrived);
  std::chrono::microseconds nap = 100us;
  for (int all = 0;;) {
    MPI_Test(&arrived, &all, MPI_STATUS_IGNORE);
    if (all) return;
    std::this_thread::sleep_for(nap);
    nap = std::min<std::chrono::microseconds>(2 * nap, 10ms);
  }
}

AbortRecord::AbortRecord(const ResultsDirectory& results, const Limits& limits)
    : results_(results), limits_(limits) {
  observe_abort([this](ExitCode code, const std::string& reason) { on_abort(code, reason); });
}

AbortRecord::~AbortRecord() { observe_abort({}); }

Outcome AbortRecord::run(const Group& group, const End& line, const std::function<void()>& work) {
  {
    const std::lock_guard lock(mutex_);
    line_ = line;
    phase_ = "set-up";
  }
  sleep_until_all_arrive(limits_);
  Outcome outcome;
  if (log_rank() < group.size) {
    const WaitLimit limit("a case", 2 * limits_.case_seconds + 5);
    outcome = first_failure(group.raw.get(), outcome_of(work), grace_seconds(limits_)).named;
  }
  sleep_until_all_arrive(limits_);
  const std::lock_guard lock(mutex_);
  line_.reset();
  return outcome;
}

void AbortRecord::enter(std::string phase) {
  const std::lock_guard lock(mutex_);
  phase_ = std::move(phase);
}

void AbortRecord::on_abort(ExitCode code, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (!line_) return;
  // The watchdog has an exit code of its own for a stalled rank.
  const bool stalled = code == ExitCode::timeout || reason.find("has waited") != std::string::npos;
  const ExitCode ended = stalled ? ExitCode::timeout : code;
  try {
    if (line_->result) {
      CaseResult& result = *line_->result;
      result.end(ended, reason.empty() ? "the job was aborted" : phase_ + ": " + reason);
      line_->last = true;
      line_->time = utc_time();
      Journal(results_.path(), fmt::format("{}@{}", result.launch, log_rank()), {}).append(*line_);
    }
    write_results(results_);
  } catch (const std::exception& error) {
    log_from_this_rank(error.what());
  }
  print_result_line("FAIL", fmt::format("{}: {}; use --resume to run the other cases", line_->what,
                                        status_for(ended)));
}

void print_result_line(const std::string& verdict, const std::string& text) {
  std::fputs(fmt::format("RESULT: {} {}\n", verdict, one_line(text)).c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace tessera::bench
