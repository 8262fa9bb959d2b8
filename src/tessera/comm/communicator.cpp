// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/base/pair_tree.hpp>
#include <tessera/comm/detail/call_check.hpp>
#include <tessera/comm/detail/communicator_state.hpp>
#include <tessera/process/watchdog.hpp>

namespace tessera {
namespace {

using detail::CommunicatorState;
using StatePtr = std::shared_ptr<CommunicatorState>;

std::unique_ptr<Transport> make_transport(MPI_Comm comm, int rank, const detail::World& world,
                                          const Site& site) {
  const CommOptions& options = world.options;
  const bool has_nccl = world.backend.backend == Backend::nccl;
  // NCCL's kernels occupy a device until all ranks have called, so MPI must not use it then.
  const Unfit unfit = options.stage_through_host ? Unfit::everything
                      : has_nccl                 ? Unfit::out_of_reach
                                                 : unfit_for_mpi();
  std::unique_ptr<Transport> transport = make_mpi_transport(comm, options, site);
  if (unfit != Unfit::none || !on_host)
    transport = make_host_staging(std::move(transport), rank, unfit, options.max_count);
  if (has_nccl) transport = make_nccl_transport(std::move(transport), comm, options, site);
  return transport;
}

StatePtr make_state(std::shared_ptr<detail::World> world, std::string axis) {
  auto state = std::make_shared<CommunicatorState>();
  state->world = std::move(world);
  state->axis = std::move(axis);
  state->counts = &state->world->ledger.axis(state->axis);
  for (std::size_t i = 0; i < num_operations; ++i)
    state->region_names[i] = fmt::format("tessera::{}({})", names_of<Operation>[i], state -> axis);
  return state;
}

/// Throws if the handle has been moved from.
CommunicatorState& checked(const StatePtr& state) {
  if (!state) throw Error(ExitCode::communication, "a moved-from communicator was used");
  return *state;
}

/// With check_collectives all ranks compare their calls and throw the same Error.
void check_call(const CommunicatorState& state, const Call& call) {
  const auto problem = find_problem(call, state.size, state.rank, state.max_tag);
  const bool together = state.world->options.check_collectives && state.size > 1;
  if (together && !is_point_to_point(call.operation)) {
    agree_on_call(state.control.get(), call, problem, state.axis);
  } else if (problem) {
    throw Error(ExitCode::communication, "{}: {}", describe(call, state.axis), *problem);
  }
}

/// Checks and counts the call.
void prepare(CommunicatorState& state, const Call& call) {
  check_call(state, call);
  if (state.size == 1) return copy(call.in, call.out);
  (*state.counts)[static_cast<std::size_t>(call.operation)].add(call.full().rows *
                                                                call.full().bytes());
}

/// Takes over `control`. A communicator of one rank keeps nothing of MPI.
void connect(CommunicatorState& state, MpiHandle control, const Site& site) {
  const MPI_Comm comm = control.get();
  check_mpi(MPI_Comm_rank(comm, &state.rank), "MPI_Comm_rank", site);
  check_mpi(MPI_Comm_size(comm, &state.size), "MPI_Comm_size", site);
  if (state.size == 1) return;
  int* max_tag = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(comm, MPI_TAG_UB, &max_tag, &found), "MPI_Comm_get_attr", site);
  state.max_tag = found ? *max_tag : 32767;
  state.transport = make_transport(comm, state.rank, *state.world, site);
  if (state.world->options.timeout_seconds > 0)
    state.group = std::make_unique<WatchedGroup>(comm, state.axis, site);
  state.control = std::move(control);
}

/// Makes a rank whose other ranks do not exist.
StatePtr fake_state(std::shared_ptr<detail::World> world, std::string axis, FakeRank fake,
                    const Site& site) {
  StatePtr state = make_state(std::move(world), std::move(axis));
  state->rank = fake.rank;
  state->size = fake.ranks;
  if (fake.ranks == 1) return state;
  state->is_fake = true;
  state->max_tag = std::numeric_limits<int>::max();
  state->control = MpiHandle::duplicate(MPI_COMM_SELF, site);
  state->transport = make_fake_transport(fake.rank, fake.ranks);
  return state;
}

}  // namespace

Communicator::Communicator(StatePtr state) : state_(std::move(state)) {}

Communicator Communicator::world(const CommOptions& options, Site site) {
  validate(options);
  if (!mpi_is_running()) {
    throw Error(ExitCode::communication, "a communicator needs MPI, which is not running");
  }
  set_timeout_seconds(options.timeout_seconds);
  const WaitLimit limit("making a communicator of all ranks", options.timeout_seconds, site);
  auto world = std::make_shared<detail::World>();
  world->options = options;
  if (const auto fake = options.fake) {
    world->backend.reason =
        fmt::format("unused: one process as rank {} of {}", fake->rank, fake->ranks);
    return Communicator(fake_state(std::move(world), "world", *fake, site));
  }
  world->backend = choose_backend(options.backend, backend_facts());
  MpiHandle control = MpiHandle::duplicate(MPI_COMM_WORLD, site);
  int size = 0;
  check_mpi(MPI_Comm_size(control.get(), &size), "MPI_Comm_size", site);
  if (size > 1 && options.timeout_seconds > 0) link_watchdogs(control.get(), site);
  StatePtr state = make_state(std::move(world), "world");
  connect(*state, std::move(control), site);
  return Communicator(std::move(state));
}

Communicator Communicator::split(int color, int key, std::string axis, Site site) const {
  const CommunicatorState& parent = checked(state_);
  if (parent.size == 1) return alone(std::move(axis));
  if (parent.is_fake)
    throw Error(ExitCode::communication,
                "split of axis {} at {}: a rank without others knows no other colors", parent.axis,
                to_string(site));
  if (color < 0) {
    throw Error(ExitCode::communication, "split of axis {} at {}: color {} is negative",
                parent.axis, to_string(site), color);
  }
  const Call call{.operation = Operation::split, .site = site};
  const detail::CallScope scope(parent, call);
  check_call(parent, call);
  StatePtr state = make_state(parent.world, std::move(axis));
  connect(*state, MpiHandle::split(parent.control.get(), color, key, site), site);
  if (state->transport) state->transport->connect(site);
  return Communicator(std::move(state));
}

Communicator Communicator::split(const std::function<int(int)>& group_of, std::string axis,
                                 Site site) const {
  const CommunicatorState& parent = checked(state_);
  if (!parent.is_fake) return split(group_of(parent.rank), parent.rank, std::move(axis), site);
  FakeRank fake{0, 0};
  for (int rank = 0, own = group_of(parent.rank); rank < parent.size; ++rank)
    if (group_of(rank) == own) fake.rank += rank < parent.rank, ++fake.ranks;
  return Communicator(fake_state(parent.world, std::move(axis), fake, site));
}

Communicator Communicator::alone(std::string axis) const {
  return Communicator(make_state(checked(state_).world, std::move(axis)));
}

int Communicator::rank() const { return checked(state_).rank; }
int Communicator::size() const { return checked(state_).size; }
bool Communicator::is_fake() const { return checked(state_).is_fake; }
const std::string& Communicator::axis() const { return checked(state_).axis; }
Ledger& Communicator::ledger() const { return checked(state_).world->ledger; }
const CommOptions& Communicator::options() const { return checked(state_).world->options; }
const BackendChoice& Communicator::backend() const { return checked(state_).world->backend; }

void Communicator::barrier(Site site) const {
  run({.operation = Operation::barrier, .site = site});
}

Communicator Communicator::in_tree(TreeTerms terms, Site site) const {
  if (terms.nodes.empty())
    for (Size rank = 0; rank < size(); ++rank)
      terms.nodes.push_back({balanced_split(Size{1} << tree_levels(size()), size(), rank)});
  if (static_cast<int>(terms.nodes.size()) != size())
    throw Error(ExitCode::communication, "a tree of sums over axis {} at {}: {} terms for {} ranks",
                axis(), to_string(site), terms.nodes.size(), size());
  Communicator ordered = *this;
  ordered.tree_ = std::make_shared<const SumTree>(std::move(terms));
  return ordered;
}

Call Communicator::in_order(Call call) const {
  if (!tree_ || !is_reduction(call.operation) || call.op != ReduceOp::sum ||
      (call.in.type != DType::float32 && call.in.type != DType::float64))
    return call;
  call.in.rows = tree_->rows_of(rank());
  call.in.stride = tree_->of.in_stride;
  call.out.rows = tree_->rows;
  call.out.stride = tree_->of.out_stride;
  if (!tree_->is_pair()) call.tree = tree_.get();
  return call;
}

void Communicator::run(const Call& in_any_order) const {
  CommunicatorState& state = checked(state_);
  const Call call = in_order(in_any_order);
  if (state.size == 1) return prepare(state, call);
  const detail::CallScope scope(state, call);
  prepare(state, call);
  state.transport->run(call);
}

Request Communicator::start(const Call& in_any_order, std::any views, Scratch scratch) const {
  CommunicatorState& state = checked(state_);
  const Call call = in_order(in_any_order);
  if (state.size == 1) {
    prepare(state, call);
    return Request();
  }
  const detail::CallScope scope(state, call);
  prepare(state, call);
  auto flight = std::make_unique<detail::InFlight>();
  flight->comm = state_;
  flight->operation = call.operation;
  flight->views = std::move(views);
  flight->scratch = std::move(scratch);
  flight->watched = scope.waited_for();
  flight->pending = state.transport->start(call);
  return Request(std::move(flight));
}

}  // namespace tessera
