// SPDX-License-Identifier: Apache-2.0
#include "run/group.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include <tessera/process/agreement.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/runtime.hpp>
#include <tessera/process/wait_limit.hpp>

#include "results/results_directory.hpp"

namespace tessera::bench {
namespace {

/// Seconds that a rank with an error waits for ranks that may be stuck in a collective. It is
/// shorter than the time limit of the watchdog, whose message would hide the cause.
double grace_seconds(const Limits& limits) { return std::min(10.0, limits.case_seconds / 2); }

}  // namespace

MpiHandle split_raw(MPI_Comm parent, int color, int key, const Site& site) {
  const WaitLimit limit("a split", timeout_seconds(), site);
  return MpiHandle::split(parent, color, key, site);
}

Outcome run_on_group(const Group& group, const Limits& limits, const std::function<void()>& work) {
  const Outcome mine = outcome_of(work);
  const WaitLimit limit("the end of a case", longest_run(limits.case_seconds));
  const auto agreed = agree_on_outcome(group.raw.get(), mine, grace_seconds(limits));
  if (agreed) return *agreed;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::string message = fmt::format("rank {}: {}", rank, mine.message);
  log_error(message);
  abort_job(mine.code, message);
}

void sleep_until_all_arrive(const Limits& limits, MPI_Comm comm, const Site& site) {
  using namespace std::chrono_literals;
  const WaitLimit limit("a rank that has nothing to do", longest_run(limits.case_seconds), site);
  MPI_Request arrived = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm, &arrived);
  std::chrono::microseconds nap = 100us;
  for (int all = 0;;) {
    MPI_Test(&arrived, &all, MPI_STATUS_IGNORE);
    if (all) return;
    std::this_thread::sleep_for(nap);
    nap = std::min<std::chrono::microseconds>(2 * nap, 10ms);
  }
}

}  // namespace tessera::bench
