// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <any>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include <mpi.h>

#include <tessera/base/region.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/comm/detail/call_check.hpp>
#include <tessera/comm/detail/mpi_handle.hpp>
#include <tessera/comm/detail/transport.hpp>
#include <tessera/comm/request.hpp>
#include <tessera/process/watchdog.hpp>

namespace tessera::detail {

/// Shared by all communicators that come from one world.
struct World {
  CommOptions options;
  BackendChoice backend;
  Ledger ledger;
};

/// The state behind a Communicator. With one rank it holds nothing of MPI.
struct CommunicatorState {
  std::shared_ptr<World> world;
  std::string axis;
  /// Names of profiling regions, "tessera::all_reduce(data)", made once so that calls do not
  /// allocate.
  std::array<std::string, num_operations> region_names;
  int rank = 0;
  int size = 1;
  int max_tag = 0;
  bool is_fake = false;  ///< the other ranks do not exist, and `control` has only this process
  Ledger::Counts* counts = nullptr;
  MpiHandle control;  ///< for splits and agreements, not for calls of the user
  std::unique_ptr<Transport> transport;
  std::unique_ptr<WatchedGroup> group;  ///< null: calls have no time limit

  const char* region_name(Operation operation) const {
    return region_names[static_cast<std::size_t>(operation)].c_str();
  }
  static const std::shared_ptr<CommunicatorState>& of(const Communicator& comm) {
    return comm.state_;
  }
};

/// A call in flight. It keeps its communicator, its Views and its scratch alive.
struct InFlight {
  /// Gives up a call that will not be completed. MPI may still write to the Views, so they are
  /// never freed.
  void abandon() noexcept {
    if (pending) pending->abandon();
    static_cast<void>(new auto(std::pair(std::move(views), std::move(scratch))));
    static_cast<void>(pending.release());
  }

  std::shared_ptr<CommunicatorState> comm;
  Operation operation = Operation::barrier;
  std::any views;
  Scratch scratch;
  std::unique_ptr<PendingCall> pending;
  WatchedCall watched;  ///< in wait()
};

/// Marks the time in which a call may block, for profilers and for the watchdog.
class CallScope {
 public:
  CallScope(const CommunicatorState& comm, const Call& call)
      : region_(comm.region_name(call.operation)), limit_(watched(comm, call)) {
    mark_event(bytes_event, [&] { return std::to_string(call.full().bytes()); });
  }
  /// The wait for a call in flight.
  explicit CallScope(const InFlight& call)
      : region_(call.comm->region_name(call.operation)), limit_(call.watched) {}

  /// Returns the numbered call, for a scope that waits for it later.
  WatchedCall waited_for() const {
    WatchedCall call = limit_.call();
    call.waiting = true;
    return call;
  }

 private:
  static WatchedCall watched(const CommunicatorState& comm, const Call& call) {
    return {.what = name_of(call.operation),
            .site = call.site,
            .limit = comm.group ? comm.world->options.timeout_seconds : 0,
            .group = comm.group.get(),
            .peer = is_point_to_point(call.operation) ? call.peer : -1,
            .tag = call.tag};
  }

  Region region_;
  WaitLimit limit_;
};

/// Marks an exchange between the ranks of a communicator (two or more) that is not a call of the
/// user. The watchdog reports it as an agreement, and the ledger does not count it. With
/// check_collectives all ranks must have the same call site.
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
