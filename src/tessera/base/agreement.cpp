// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <chrono>
#include <cstdint>
#include <thread>

#include <fmt/format.h>

#include <tessera/base/agreement.hpp>
#include <tessera/base/mpi_error.hpp>
#include <tessera/base/share_text.hpp>
#include <tessera/base/timer.hpp>

namespace tessera {
namespace {

// What the ranks vote on, by element-wise minimum.
enum Field { first_failed, lowest_hash, minus_highest_hash, num_fields };
using Vote = std::array<std::int64_t, num_fields>;

// FNV-1a over code and message, non-negative; 0 stands for success.
std::int64_t hash(const Outcome& outcome) {
  if (!outcome.failed()) return 0;
  std::uint64_t h = 14695981039346656037u ^ static_cast<std::uint64_t>(outcome.code);
  for (const char c : outcome.message) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return static_cast<std::int64_t>(h >> 1) | 1;
}

// Whether the request completed in time. Sleeps: ranks that still work may need the core.
bool wait_for(MPI_Request& request, bool forever, double seconds, const Site& site) {
  const Timer timer;
  while (true) {
    int done = 0;
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test", site);
    if (done) return true;
    if (!forever && timer.seconds() > seconds) return false;
    if (timer.seconds() > 1e-3) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace

std::optional<FirstFailure> first_failure(MPI_Comm comm, const Outcome& mine, double grace_seconds,
                                          const Site& site) {
  int rank = 0;
  int size = 1;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank", site);
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size", site);
  if (size == 1) return FirstFailure{mine, 0, true};

  // Static: if time runs out, the request outlives this call and still writes here.
  static Vote vote;
  static Vote result;
  vote = {mine.failed() ? rank : size, hash(mine), -hash(mine)};
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(
      MPI_Iallreduce(vote.data(), result.data(), num_fields, MPI_INT64_T, MPI_MIN, comm, &request),
      "MPI_Iallreduce", site);
  if (!wait_for(request, !mine.failed(), grace_seconds, site)) return std::nullopt;
  if (result[first_failed] == size) return FirstFailure{};

  const int root = static_cast<int>(result[first_failed]);
  int code = static_cast<int>(mine.code);
  check_mpi(MPI_Bcast(&code, 1, MPI_INT, root, comm), "MPI_Bcast", site);
  return FirstFailure{{static_cast<ExitCode>(code), broadcast_text(comm, root, mine.message, site)},
                      root,
                      result[lowest_hash] == -result[minus_highest_hash]};
}

std::optional<Outcome> agree_on_outcome(MPI_Comm comm, const Outcome& mine, double grace_seconds) {
  std::optional<FirstFailure> first = first_failure(comm, mine, grace_seconds);
  if (!first) return std::nullopt;
  if (!first->everywhere && !first->outcome.message.empty())
    first->outcome.message = fmt::format("rank {}: {}", first->rank, first->outcome.message);
  return first->outcome;
}

}  // namespace tessera
