// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks, redistributions, and a step that does nearly nothing.
#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <mpi.h>

#include <tessera/mesh/redistribute.hpp>

#include "measure/case_run.hpp"
#include "measure/wire_model.hpp"
#include "micro/micro.hpp"
#include "micro/micro_check.hpp"
#include "micro/micro_raw.hpp"

namespace tessera::bench {
namespace {

struct Counting {
  KOKKOS_FUNCTION float operator()(Size i) const { return static_cast<float>(i % 1000); }
};

/// Sends v to a partner and receives it, with a tag.
struct Messages {
  std::function<void(const Vector<float>&v, int partner, int tag)> send, receive;
};

Messages through_communicator(const Communicator& ranks) {
  return {[=](const Vector<float>& v, int partner, int tag) { ranks.send(v, partner, tag); },
          [=](const Vector<float>& v, int partner, int tag) { ranks.receive(v, partner, tag); }};
}

Messages through_mpi(const std::shared_ptr<MpiHandle>& raw) {
  return {[=](const Vector<float>& v, int partner, int tag) {
            MPI_Send(v.data(), static_cast<int>(v.extent(0)), MPI_FLOAT, partner, tag, raw->get());
          },
          [=](const Vector<float>& v, int partner, int tag) {
            MPI_Recv(v.data(), static_cast<int>(v.extent(0)), MPI_FLOAT, partner, tag, raw->get(),
                     MPI_STATUS_IGNORE);
          }};
}

/// There and back between neighbours along the axis, so that twice the message is moved. The first
/// of two sends what it has, and the other one has it, too, in the end. A last rank without a
/// neighbour waits.
MicroCase ping_pong(const Communicator& ranks, const Messages& messages, Size elements) {
  const int rank = ranks.rank(), partner = rank % 2 == 0 ? rank + 1 : rank - 1;
  const bool has_partner = partner < ranks.size();
  const Vector<float> v("tessera::bench::message", elements);
  const auto there_and_back = [=] {
    if (!has_partner) return;
    if (rank < partner) {
      messages.send(v, partner, 0);
      messages.receive(v, partner, 1);
    } else {
      messages.receive(v, partner, 0);
      messages.send(v, partner, 1);
    }
  };
  const auto count_wrong = [=] {
    // What arrives on the way back must not be what was there before.
    fill_with(v, [=](Size i) { return pattern(rank, i); });
    if (!has_partner) return Size{0};
    const auto of_first = [first = std::min(rank, partner)](Size i) { return pattern(first, i); };
    if (rank > partner) {
      there_and_back();
      return count_wrong_in(v, of_first);
    }
    messages.send(v, partner, 0);
    fill_with(v, [](Size) { return -1000.0F; });
    messages.receive(v, partner, 1);
    return count_wrong_in(v, of_first);
  };
  const double moved = 2.0 * static_cast<double>(elements) * sizeof(float);
  return {there_and_back,
          {{"algbw_bytes_per_second", moved}, {"busbw_bytes_per_second", moved}},
          count_wrong};
}

/// Bytes that a rank sends over those of the tensor; a shard is cut out of what is there.
double wire_factor_of(Placement from, Placement to, Size ranks) {
  if (from.is_replicate()) return 0;
  if (from.is_partial())
    return wire_factor(to.is_replicate() ? Operation::all_reduce : Operation::reduce_scatter,
                       ranks);
  if (to.is_replicate()) return wire_factor(Operation::all_gather, ranks);
  return wire_factor(Operation::all_to_all, ranks) / static_cast<double>(ranks);  // of its shard
}

MicroCase redistribution(const Mesh& mesh, std::size_t axis, Size side, Placement from,
                         Placement to) {
  Placements before(mesh.shape().num_axes()), after(mesh.shape().num_axes());
  before[axis] = from;
  after[axis] = to;
  const auto tensor = std::make_shared<ShardedTensor<float>>(
      from_function<float>(mesh, {side, side}, before, Counting{}));
  const double payload = static_cast<double>(side * side) * sizeof(float);
  const double factor = wire_factor_of(from, to, mesh.shape().axes()[axis].size);
  std::vector<std::pair<std::string, double>> rates{{"algbw_bytes_per_second", payload}};
  if (factor > 0) rates.emplace_back("busbw_bytes_per_second", payload * factor);
  return {[=] { redistribute(*tensor, after); }, rates,
          [=] { return count_wrong_in(to_global(redistribute(*tensor, after)), Counting{}); }};
}

/// One sample a rank, one weight: what a step costs beside its work.
MicroCase empty_step(const Communicator& world) {
  Config config;
  config.model.mlp.widths = {1, 1};
  config.data.samples = config.training.batch_size = world.size();
  const auto run = std::make_shared<CaseRun<float>>(config, world);
  MicroCase micro;
  micro.steps = [=](Size iterations) {
    run->time_steps(5);
    return run->time_steps(iterations);
  };
  return micro;
}

void add_messages(MicroContext& context, std::size_t axis, const std::shared_ptr<MpiHandle>& raw,
                  Size bytes) {
  const Mesh mesh = context.mesh();
  const std::string& name = mesh.shape().axes()[axis].name;
  const Size elements = std::max<Size>(1, bytes / 4);
  const auto add_ping_pong = [&](const char* how, const Messages& messages) {
    context.add(fmt::format("{}/ping_pong/axis:{}/bytes:{}", how, name, elements * 4),
                [=] { return ping_pong(mesh.axis(name), messages, elements); });
  };
  add_ping_pong("tessera", through_communicator(mesh.axis(name)));
  if (raw) add_ping_pong("mpi", through_mpi(raw));
}

void add_redistributions(MicroContext& context, std::size_t axis, Size bytes) {
  const Mesh mesh = context.mesh();
  const std::string& name = mesh.shape().axes()[axis].name;
  const Size side = std::max<Size>(1, static_cast<Size>(std::sqrt(static_cast<double>(bytes) / 4)));
  const Placement shard = Placement::shard(0), replicate = Placement::replicate();
  const std::pair<Placement, Placement> ways[] = {{shard, replicate},
                                                  {replicate, shard},
                                                  {shard, Placement::shard(1)},
                                                  {Placement::partial(), replicate},
                                                  {Placement::partial(), shard}};
  for (const auto& way : ways)
    context.add(fmt::format("redistribute/{}_to_{}/axis:{}/bytes:{}", to_string(way.first),
                            to_string(way.second), name, side * side * 4),
                [=] { return redistribution(mesh, axis, side, way.first, way.second); });
}

}  // namespace

void add_mesh_benchmarks(MicroContext& context) {
  const MeshShape& shape = context.mesh().shape();
  for (std::size_t axis = 0; axis < shape.num_axes(); ++axis) {
    if (shape.axes()[axis].size == 1) continue;
    const std::shared_ptr<MpiHandle> raw = raw_axis(context.mesh(), shape.axes()[axis].name);
    for (const Size bytes : context.options().bytes) {
      add_messages(context, axis, raw, bytes);
      add_redistributions(context, axis, bytes);
    }
  }
  const Communicator world = context.mesh().world();
  context.add("empty_step", [=] { return empty_step(world); });
}

}  // namespace tessera::bench
