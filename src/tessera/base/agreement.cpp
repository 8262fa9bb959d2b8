// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <chrono>
#include <cstdint>
#include <thread>

#include <fmt/format.h>

#include <tessera/base/agreement.hpp>
#include <tessera/base/text.hpp>
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
bool wait_for(MPI_Request& request, bool forever, double seconds) {
  const Timer timer;
  while (true) {
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) return true;
    if (!forever && timer.seconds() > seconds) return false;
    if (timer.seconds() > 1e-3) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace

std::optional<Outcome> agree_on_outcome(MPI_Comm comm, const Outcome& mine, double grace_seconds) {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  if (size == 1) return mine;

  // Static: if time runs out, the request outlives this call and still writes here.
  static Vote vote;
  static Vote result;
  vote = {mine.failed() ? rank : size, hash(mine), -hash(mine)};
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(vote.data(), result.data(), num_fields, MPI_INT64_T, MPI_MIN, comm, &request);
  if (!wait_for(request, !mine.failed(), grace_seconds)) return std::nullopt;
  if (result[first_failed] == size) return Outcome{};

  const int root = static_cast<int>(result[first_failed]);
  std::array<int, 2> head = {static_cast<int>(mine.code), static_cast<int>(mine.message.size())};
  MPI_Bcast(head.data(), 2, MPI_INT, root, comm);
  std::string message = rank == root ? mine.message : std::string();
  message.resize(static_cast<std::size_t>(head[1]));
  MPI_Bcast(message.data(), head[1], MPI_CHAR, root, comm);
  const bool same_everywhere = result[lowest_hash] == -result[minus_highest_hash];
  if (!same_everywhere && !message.empty()) message = fmt::format("rank {}: {}", root, message);
  return Outcome{static_cast<ExitCode>(head[0]), std::move(message)};
}

}  // namespace tessera
