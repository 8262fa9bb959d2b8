// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <new>

#include <tessera/comm/agree.hpp>
#include <tessera/comm/call_check.hpp>
#include <tessera/comm/communicator_state.hpp>

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

Failure current_failure() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.code(), error.what()};
  } catch (const std::bad_alloc&) {
    return {ExitCode::out_of_memory, "out of memory"};
  } catch (const std::exception& error) {
    return {ExitCode::usage, error.what()};
  } catch (...) {
    return {ExitCode::usage, "an unknown exception"};
  }
}

void raise_first_failure(const Communicator& comm, const std::optional<Failure>& mine, Site site) {
  const auto& state = detail::CommunicatorState::of(comm);
  if (comm.size() == 1) {
    if (mine) throw Error(mine->code, mine->message);
    return;
  }
  Call call;
  call.operation = Operation::agree;
  call.site = site;
  const detail::CallScope scope(*state, call);
  const MPI_Comm control = state->control.get();
  if (state->world->options.check_collectives) agree_on_call(control, call, {}, state->axis);
  int first = mine ? state->rank : std::numeric_limits<int>::max();
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, control), "MPI_Allreduce",
            site);
  if (first == std::numeric_limits<int>::max()) return;
  Failure failure = mine.value_or(Failure());
  int code = static_cast<int>(failure.code);
  check_mpi(MPI_Bcast(&code, 1, MPI_INT, first, control), "MPI_Bcast", site);
  broadcast_text(control, first, failure.message, state->world->options.max_count, site);
  throw Error(static_cast<ExitCode>(code), failure.message);
}

}  // namespace tessera
