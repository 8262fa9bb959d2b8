// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include <tessera/base/timer.hpp>
#include <tessera/process/agreement.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/mpi_error.hpp>
#include <tessera/process/runtime.hpp>
#include <tessera/process/share_text.hpp>

namespace tessera {
namespace {

/// Returns whether the request completed in time. Sleeps, because ranks that still work may need
/// the core.
bool wait_for(MPI_Request& request, double seconds, const Site& site) {
  const Timer timer;
  while (true) {
    int done = 0;
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test", site);
    if (done) return true;
    if (timer.seconds() > seconds) return false;
    if (timer.seconds() > 1e-3) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace

FirstFailure first_failure(MPI_Comm comm, const Outcome& mine, double grace_seconds,
                           const Site& site) {
  const int failed = mine.failed() ? 1 : 0;
  int any = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallreduce(&failed, &any, 1, MPI_INT, MPI_MAX, comm, &request), "MPI_Iallreduce",
            site);
  if (!wait_for(request, mine.failed() ? grace_seconds : no_time_limit, site)) {
    const std::string message = fmt::format("rank {}: {}", log_rank(), mine.message);
    log_error(message);
    abort_job(mine.code, message);
  }
  if (any == 0) return {};

  // A text holds the code as one byte and the message. It is empty if the rank has not failed.
  const auto texts =
      gather_texts(comm, mine.failed() ? static_cast<char>(mine.code) + mine.message : "", site);
  const auto first =
      std::find_if(texts.begin(), texts.end(), [](auto& text) { return text != ""; });
  const Outcome outcome{static_cast<ExitCode>(first->front()), first->substr(1)};
  const bool everywhere = std::count(texts.begin(), texts.end(), *first) == std::ssize(texts);
  if (everywhere || outcome.message.empty()) return {outcome, outcome};
  return {outcome,
          {outcome.code, fmt::format("rank {}: {}", first - texts.begin(), outcome.message)}};
}

}  // namespace tessera
