// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include <fmt/format.h>

#include <tessera/base/agreement.hpp>
#include <tessera/base/log.hpp>
#include <tessera/base/run_main.hpp>

namespace tessera {
namespace {

void report(const Outcome& outcome) {
  if (log_rank() == 0 && !outcome.message.empty()) log_error(outcome.message);
}

}  // namespace

int run_main(int& argc, char**& argv, const std::function<ExitCode(Runtime&)>& body,
             const RuntimeOptions& options, double grace_seconds) {
  try {
    Runtime runtime(argc, argv, options);
    const Outcome mine = outcome_of([&] { return body(runtime); });
    // Staggered, so that usually one rank speaks before its abort silences the others.
    const double stagger = 0.02 * std::min(runtime.world_rank(), 100);
    const std::optional<Outcome> agreed = runtime.agree(mine, grace_seconds + stagger);
    if (!agreed) {
      const std::string message = fmt::format("rank {}: {}", runtime.world_rank(), mine.message);
      log_error(message);
      abort_job(mine.code, message);
    }
    report(*agreed);
    return static_cast<int>(agreed->code);
  } catch (...) {
    // The runtime could not start; it throws the same on every rank.
    const Outcome outcome = describe_current_exception();
    report(outcome);
    // MPI is gone, and launchers kill the others of a process that fails: let rank 0 speak first.
    if (log_rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return static_cast<int>(outcome.code);
  }
}

}  // namespace tessera
