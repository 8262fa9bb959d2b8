// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <tessera/comm/detail/call_check.hpp>
#include <tessera/comm/detail/communicator_state.hpp>

namespace tessera::detail {

/// For as long as the ranks of a communicator (two or more) talk about something that is no traffic
/// of the caller: the watchdog sees it as an agreement, the ledger does not count it, and with
/// check_collectives all ranks must have come from the same line.
class ControlCall {
 public:
  ControlCall(const Communicator& comm, const Site& site)
      : state_(*CommunicatorState::of(comm)),
        call_{.operation = Operation::agree, .site = site},
        scope_(state_, call_) {
    if (state_.world->options.check_collectives) agree_on_call(ranks(), call_, {}, state_.axis);
  }
  MPI_Comm ranks() const { return state_.control.get(); }

 private:
  CommunicatorState& state_;
  Call call_;
  CallScope scope_;
};

}  // namespace tessera::detail
