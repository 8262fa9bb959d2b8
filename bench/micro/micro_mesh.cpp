// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks, redistributions, and a step that does nearly nothing.
#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <mpi.h>

#include <tessera/array/redistribute.hpp>
#include <tessera/predict/wire_model.hpp>

#include "measure/case_run.hpp"
#include "micro/micro.hpp"
#include "micro/micro_check.hpp"

namespace tessera::bench {
namespace {

struct Counting {
  KOKKOS_FUNCTION float operator()(Size i) const { return static_cast<float>(i % 1000); }
};

void send(const AxisPoint& to, const Vector<float>& v, int partner, int tag, bool through_mpi) {
  if (through_mpi)
    MPI_Send(v.data(), static_cast<int>(v.extent(0)), MPI_FLOAT, partner, tag, to.raw->get());
  else
    to.ranks.send(v, partner, tag);
}

void receive(const AxisPoint& from, const Vector<float>& v, int partner, int tag,
             bool through_mpi) {
  if (through_mpi)
    MPI_Recv(v.data(), static_cast<int>(v.extent(0)), MPI_FLOAT, partner, tag, from.raw->get(),
             MPI_STATUS_IGNORE);
  else
    from.ranks.receive(v, partner, tag);
}

/// There and back between neighbours along the axis, so that twice the message is moved. The first
/// of two sends what it has, and the other one has it, too, in the end. A last rank without a
/// neighbour waits.
MicroCase ping_pong(const AxisPoint& point, Size elements, bool through_mpi) {
  const int rank = point.ranks.rank(), partner = rank % 2 == 0 ? rank + 1 : rank - 1;
  const bool has_partner = partner < point.ranks.size();
  const Vector<float> v("tessera::bench::message", elements);
  const auto there_and_back = [=] {
    if (!has_partner) return;
    if (rank < partner) {
      send(point, v, partner, 0, through_mpi);
      receive(point, v, partner, 1, through_mpi);
    } else {
      receive(point, v, partner, 0, through_mpi);
      send(point, v, partner, 1, through_mpi);
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
    send(point, v, partner, 0, through_mpi);
    fill_with(v, [](Size) { return -1000.0F; });
    receive(point, v, partner, 1, through_mpi);
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
  return {[=] { run->warm_up(1, [] {}); }};
}

void add_messages(MicroContext& context, const AxisPoint& point) {
  const Size elements = std::max<Size>(1, point.bytes / 4);
  for (const bool through_mpi : {false, true})
    if (!through_mpi || point.raw)
      context.add(fmt::format("{}/ping_pong/axis:{}/bytes:{}", through_mpi ? "mpi" : "tessera",
                              point.ranks.axis(), elements * 4),
                  [=] { return ping_pong(point, elements, through_mpi); });
}

void add_redistributions(MicroContext& context, const AxisPoint& point) {
  const Mesh mesh = context.mesh();
  const double elements = static_cast<double>(point.bytes) / 4;
  const Size side = std::max<Size>(1, static_cast<Size>(std::sqrt(elements)));
  const Placement shard = Placement::shard(0), replicate = Placement::replicate();
  const std::pair<Placement, Placement> ways[] = {{shard, replicate},
                                                  {replicate, shard},
                                                  {shard, Placement::shard(1)},
                                                  {Placement::partial(), replicate},
                                                  {Placement::partial(), shard}};
  for (const auto& way : ways)
    context.add(fmt::format("redistribute/{}_to_{}/axis:{}/bytes:{}", to_string(way.first),
                            to_string(way.second), point.ranks.axis(), side * side * 4),
                [=] { return redistribution(mesh, point.axis, side, way.first, way.second); });
}

}  // namespace

void add_mesh_benchmarks(MicroContext& context) {
  for (const AxisPoint& point : context.axis_points()) {
    add_messages(context, point);
    add_redistributions(context, point);
  }
  const Communicator world = context.mesh().world();
  context.add("empty_step", [=] { return empty_step(world); });
}

}  // namespace tessera::bench
