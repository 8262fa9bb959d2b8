// SPDX-License-Identifier: Apache-2.0
#include <tessera/comm/detail/call_check.hpp>
#include <tessera/comm/detail/control_call.hpp>

namespace tessera::detail {

ControlCall::ControlCall(const Communicator& comm, const Site& site)
    : state_(*CommunicatorState::of(comm)),
      call_{.operation = Operation::agree, .site = site},
      scope_(state_, call_) {
  if (state_.world->options.check_collectives) agree_on_call(ranks(), call_, {}, state_.axis);
}

}  // namespace tessera::detail
