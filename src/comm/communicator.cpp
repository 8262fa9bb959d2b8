// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

#include <tessera/base/error.hpp>
#include <tessera/comm/communicator_state.hpp>

namespace tessera {
namespace {

using detail::CommunicatorState;
using StatePtr = std::shared_ptr<CommunicatorState>;

void check_options(const CommOptions& options) {
  if (options.max_count < 1 || options.max_count > std::numeric_limits<int>::max()) {
    throw ConfigError("comm.max_count", std::to_string(options.max_count),
                      "must be from 1 to 2147483647");
  }
  if (!(options.timeout_seconds >= 0)) {
    throw ConfigError("comm.timeout_seconds", fmt::format("{}", options.timeout_seconds),
                      "must not be negative; 0 switches the watchdog off");
  }
}

std::unique_ptr<Transport> make_transport(MPI_Comm comm, int rank, const CommOptions& options,
                                          const Site& site) {
  std::unique_ptr<Transport> transport = make_mpi_transport(comm, options, site);
  if (options.stage_through_host || !mpi_is_device_aware()) {
    transport = make_host_staging(std::move(transport), rank, options.stage_through_host);
  }
  if (options.backend == Backend::nccl) {
    transport = make_nccl_transport(std::move(transport), comm, options, site);
  }
  return transport;
}

StatePtr make_state(std::shared_ptr<detail::World> world, std::string axis) {
  auto state = std::make_shared<CommunicatorState>();
  state->world = std::move(world);
  state->axis = std::move(axis);
  state->counts = &state->world->ledger.axis(state->axis);
  return state;
}

/// Takes over `control`. With one rank nothing of MPI is kept.
void connect(CommunicatorState& state, MpiHandle control, const Site& site) {
  const MPI_Comm comm = control.get();
  check_mpi(MPI_Comm_rank(comm, &state.rank), "MPI_Comm_rank", site);
  check_mpi(MPI_Comm_size(comm, &state.size), "MPI_Comm_size", site);
  if (state.size == 1) return;
  int* max_tag = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(comm, MPI_TAG_UB, &max_tag, &found), "MPI_Comm_get_attr", site);
  state.max_tag = found ? *max_tag : 32767;
  state.transport = make_transport(comm, state.rank, state.world->options, site);
  state.control = std::move(control);
}

/// A handle that has been moved from has no communicator.
CommunicatorState& checked(const StatePtr& state) {
  if (!state) throw Error(ExitCode::communication, "a moved-from communicator was used");
  return *state;
}

/// Kokkos 3.4 has no labels for fences.
template <class Label>
void labelled_fence(const Label& label) {
  if constexpr (requires { Kokkos::fence(label); }) {
    Kokkos::fence(label);
  } else {
    Kokkos::fence();
  }
}

/// A transport may read what kernels have written, and write what they have read.
void fence(const Call& call) {
  if (call.in.needs_fence || call.out.needs_fence) labelled_fence("tessera::comm: before a call");
}

void check_call(const CommunicatorState& state, const Call& call) {
  if (auto problem = find_problem(call, state.size, state.rank, state.max_tag)) {
    throw Error(ExitCode::communication,
                fmt::format("{}: {}", describe(call, state.axis), *problem));
  }
}

/// Everything before the bytes move. False: nothing is left to do.
bool prepare(CommunicatorState& state, const Call& call) {
  check_call(state, call);
  fence(call);
  if (state.size == 1) {
    copy(call.in, call.out);
    return false;
  }
  (*state.counts)[static_cast<std::size_t>(call.operation)].add(call.full().bytes());
  return true;
}

}  // namespace

Communicator::Communicator(StatePtr state) : state_(std::move(state)) {}

Communicator Communicator::world(const CommOptions& options, Site site) {
  check_options(options);
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (!initialized) {
    throw Error(ExitCode::communication, "a communicator needs MPI, which does not run yet");
  }
  auto world = std::make_shared<detail::World>();
  world->options = options;
  StatePtr state = make_state(std::move(world), "world");
  connect(*state, MpiHandle::duplicate(MPI_COMM_WORLD, site), site);
  return Communicator(std::move(state));
}

Communicator Communicator::split(int color, int key, std::string axis, Site site) const {
  CommunicatorState& parent = checked(state_);
  if (parent.size == 1) return alone(std::move(axis));
  if (color < 0) {
    throw Error(ExitCode::communication, fmt::format("split of axis {} at {}: color {} is negative",
                                                     parent.axis, to_string(site), color));
  }
  StatePtr state = make_state(parent.world, std::move(axis));
  connect(*state, MpiHandle::split(parent.control.get(), color, key, site), site);
  return Communicator(std::move(state));
}

Communicator Communicator::alone(std::string axis) const {
  return Communicator(make_state(checked(state_).world, std::move(axis)));
}

int Communicator::rank() const { return checked(state_).rank; }
int Communicator::size() const { return checked(state_).size; }
const std::string& Communicator::axis() const { return checked(state_).axis; }
Ledger& Communicator::ledger() const { return checked(state_).world->ledger; }
const CommOptions& Communicator::options() const { return checked(state_).world->options; }

void Communicator::barrier(Site site) const {
  Call call;
  call.operation = Operation::barrier;
  call.site = site;
  run(call);
}

Request Communicator::ibarrier(Site site) const {
  Call call;
  call.operation = Operation::barrier;
  call.site = site;
  return start(call, nullptr);
}

void Communicator::run(const Call& call) const {
  CommunicatorState& state = checked(state_);
  if (!prepare(state, call)) return;
  state.transport->run(call);
}

Request Communicator::start(const Call& call, std::unique_ptr<detail::KeepAlive> views) const {
  CommunicatorState& state = checked(state_);
  if (!prepare(state, call)) return Request();
  auto flight = std::make_unique<detail::InFlight>();
  flight->comm = state_;
  flight->views = std::move(views);
  flight->operation = call.operation;
  flight->site = call.site;
  flight->pending = state.transport->start(call);
  return Request(std::move(flight));
}

}  // namespace tessera
