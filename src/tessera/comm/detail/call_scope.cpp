// SPDX-License-Identifier: Apache-2.0
#include <tessera/comm/detail/communicator_state.hpp>

namespace tessera::detail {

CallScope::CallScope(CommunicatorState& comm, const Call& call)
    : region_(comm.region_name(call.operation)), watchdog_(comm.world->watchdog.get()) {
  if (watchdog_ != nullptr) {
    note_.group = comm.id;
    note_.file = call.site.file_name();
    note_.line = call.site.line();
    note_.peer = call.peer;
    note_.tag = call.tag;
    note_.operation = call.operation;
    if (!is_point_to_point(call.operation)) {
      note_.sequence = ++comm.sequence;
      comm.group->arrive(note_.sequence, call.operation);
    }
  }
  enter();
}

CallScope::CallScope(const InFlight& call)
    : region_(call.comm->region_name(call.operation)),
      watchdog_(call.comm->world->watchdog.get()),
      note_(call.note) {
  note_.waiting = true;
  enter();
}

void CallScope::enter() {
  if (watchdog_ != nullptr) watchdog_->enter(note_);
}

CallScope::~CallScope() {
  if (watchdog_ != nullptr) watchdog_->leave();
}

}  // namespace tessera::detail
