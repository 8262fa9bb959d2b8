// SPDX-License-Identifier: Apache-2.0
#include <tessera/comm/agree.hpp>
#include <tessera/comm/detail/communicator_state.hpp>
#include <tessera/process/agreement.hpp>

namespace tessera {

void raise_first_failure(const Communicator& comm, const Outcome& mine, Site site) {
  Outcome first = mine;
  if (comm.size() > 1) {
    const detail::ControlCall call(comm, site);
    first = first_failure(call.ranks(), mine, no_time_limit, site).outcome;
  }
  if (first.failed()) throw Error(first.code, first.message);
}

}  // namespace tessera
