// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>

#include <mpi.h>

#include <tessera/base/region.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/comm/detail/call_check.hpp>
#include <tessera/comm/detail/mpi_handle.hpp>
#include <tessera/comm/detail/transport.hpp>
#include <tessera/comm/detail/watchdog.hpp>
#include <tessera/comm/request.hpp>

namespace tessera::detail {

/// What all communicators share that come from one world.
struct World {
  CommOptions options;
  BackendChoice backend;
  Ledger ledger;
  std::unique_ptr<Watchdog> watchdog;  ///< null: off
};

/// What stands behind a Communicator. With one rank there is no MPI in it.
struct CommunicatorState {
  std::shared_ptr<World> world;
  std::string axis;
  /// Profiling regions of its calls, "tessera::all_reduce(data)"; made once, so that calls allocate
  /// nothing.
  std::array<std::string, num_operations> region_names;
  int rank = 0;
  int size = 1;
  int max_tag = 0;
  Ledger::Counts* counts = nullptr;
  MpiHandle control;  ///< splits and agreements; never the traffic of the caller
  std::unique_ptr<Transport> transport;
  std::shared_ptr<WatchedGroup> group;  ///< null: the watchdog is off

  const char* region_name(Operation operation) const {
    return region_names[static_cast<std::size_t>(operation)].c_str();
  }
  static const std::shared_ptr<CommunicatorState>& of(const Communicator& comm) {
    return comm.state_;
  }
};

/// A call in flight: the communicator and the Views stay alive as long as it does.
struct InFlight {
  /// For a call that will not be completed: MPI may still write to the Views, which are never given
  /// back. The communicator is.
  void abandon() noexcept {
    if (pending) pending->abandon();
    static_cast<void>(views.release());
    static_cast<void>(pending.release());
  }

  std::shared_ptr<CommunicatorState> comm;
  std::unique_ptr<KeepAlive> views;
  std::unique_ptr<PendingCall> pending;
  WatchedCall watched;  ///< in wait()
};

/// For the time that a call may block: a profiling region, and a note for the watchdog.
class CallScope {
 public:
  CallScope(const CommunicatorState& comm, const WatchedCall& call)
      : region_(comm.region_name(call.operation)),
        watchdog_(comm.world->watchdog.get()),
        watched_(call) {
    if (watchdog_ != nullptr) watchdog_->enter(watched_);
  }
  CallScope(const CommunicatorState& comm, const Call& call)
      : CallScope(comm,
                  WatchedCall{comm.group.get(), call.operation, call.site, call.peer, call.tag}) {}
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
  ~CallScope() {
    if (watchdog_ != nullptr) watchdog_->leave();
  }

  /// The same call, numbered, for a scope that waits for it later.
  WatchedCall waited_for() const {
    WatchedCall call = watched_;
    call.waiting = true;
    return call;
  }

 private:
  Region region_;
  Watchdog* watchdog_;
  WatchedCall watched_;
};

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
