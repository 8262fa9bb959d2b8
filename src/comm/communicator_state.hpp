// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <tessera/comm/communicator.hpp>
#include <tessera/comm/mpi_handle.hpp>
#include <tessera/comm/request.hpp>
#include <tessera/comm/transport.hpp>

namespace tessera::detail {

/// What all communicators share that come from one world.
struct World {
  CommOptions options;
  Ledger ledger;
};

/// What stands behind a Communicator. With one rank there is no MPI in it.
struct CommunicatorState {
  std::shared_ptr<World> world;
  std::string axis;
  int rank = 0;
  int size = 1;
  int max_tag = 0;
  Ledger::Counts* counts = nullptr;
  MpiHandle control;  ///< splits and agreements; never the traffic of the caller
  std::unique_ptr<Transport> transport;

  static const std::shared_ptr<CommunicatorState>& of(const Communicator& comm) {
    return comm.state_;
  }
};

/// A call in flight: the communicator and the Views stay alive as long as it does.
struct InFlight {
  std::shared_ptr<CommunicatorState> comm;
  std::unique_ptr<KeepAlive> views;
  std::unique_ptr<PendingCall> pending;
  Operation operation = Operation::barrier;
  Site site{};
};

}  // namespace tessera::detail
