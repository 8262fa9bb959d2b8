// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include <tessera/comm/agree.hpp>
#include <tessera/comm/detail/call_check.hpp>
#include <tessera/comm/detail/communicator_state.hpp>

namespace tessera {
namespace {

/// Text of any length: at most `piece` bytes in a call.
void broadcast_text(MPI_Comm comm, int root, std::string& text, Size piece, const Site& site) {
  std::int64_t length = static_cast<std::int64_t>(text.size());
  check_mpi(MPI_Bcast(&length, 1, MPI_INT64_T, root, comm), "MPI_Bcast", site);
  text.resize(static_cast<std::size_t>(length));
  for (Size begin = 0; begin < length; begin += piece) {
    const int count = static_cast<int>(std::min<Size>(piece, length - begin));
    check_mpi(MPI_Bcast(text.data() + begin, count, MPI_CHAR, root, comm), "MPI_Bcast", site);
  }
}

}  // namespace

void raise_first_failure(const Communicator& comm, const Outcome& mine, Site site) {
  const auto& state = detail::CommunicatorState::of(comm);
  if (comm.size() == 1) {
    if (mine.failed()) throw Error(mine.code, mine.message);
    return;
  }
  Call call;
  call.operation = Operation::agree;
  call.site = site;
  const detail::CallScope scope(*state, call);
  const MPI_Comm control = state->control.get();
  if (state->world->options.check_collectives) agree_on_call(control, call, {}, state->axis);
  int first = mine.failed() ? state->rank : std::numeric_limits<int>::max();
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, control), "MPI_Allreduce",
            site);
  if (first == std::numeric_limits<int>::max()) return;
  int code = static_cast<int>(mine.code);
  check_mpi(MPI_Bcast(&code, 1, MPI_INT, first, control), "MPI_Bcast", site);
  std::string message = mine.message;
  broadcast_text(control, first, message, state->world->options.max_count, site);
  throw Error(static_cast<ExitCode>(code), message);
}

}  // namespace tessera
