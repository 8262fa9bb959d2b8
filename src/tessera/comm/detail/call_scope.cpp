// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>

#include <tessera/comm/detail/communicator_state.hpp>

namespace tessera::detail {

const char* region_name(Operation operation) {
  static const auto names = [] {
    std::array<std::string, num_operations> made;
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i] = "tessera::" + std::string(operation_names[i]);
    }
    return made;
  }();
  return names[static_cast<std::size_t>(operation)].c_str();
}

CallScope::CallScope(CommunicatorState& comm, const Call& call)
    : region_(region_name(call.operation)), watchdog_(comm.world->watchdog.get()) {
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
    : region_(region_name(call.operation)),
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
