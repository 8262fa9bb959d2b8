// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks, redistributions, and a step that does nearly nothing.
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include <tessera/mesh/redistribute.hpp>

#include "case_run.hpp"
#include "micro.hpp"

namespace tessera::bench {
namespace {

struct Counting {
  KOKKOS_FUNCTION float operator()(Size i) const { return static_cast<float>(i % 1000); }
};

/// There and back between neighbours along the axis; half of that is reported as bandwidth. A last
/// rank without a neighbour waits.
MicroCase ping_pong(const Communicator& ranks, Size elements) {
  const Vector<float> v("tessera::bench::message", elements);
  const int partner = ranks.rank() % 2 == 0 ? ranks.rank() + 1 : ranks.rank() - 1;
  const double payload = static_cast<double>(elements) * sizeof(float);
  return {[=] {
            if (partner >= ranks.size()) return;
            if (ranks.rank() < partner) {
              ranks.send(v, partner, 0);
              ranks.receive(v, partner, 1);
            } else {
              ranks.receive(v, partner, 0);
              ranks.send(v, partner, 1);
            }
          },
          {{"algbw_bytes_per_second", 2 * payload}}};
}

MicroCase redistribution(const Mesh& mesh, std::size_t axis, Size side, Placement from,
                         Placement to) {
  Placements before(mesh.shape().num_axes()), after(mesh.shape().num_axes());
  before[axis] = from;
  after[axis] = to;
  const auto tensor = std::make_shared<ShardedTensor<float>>(
      from_function<float>(mesh, {side, side}, before, Counting{}));
  return {[=] { redistribute(*tensor, after); },
          {{"algbw_bytes_per_second", static_cast<double>(side * side) * sizeof(float)}},
          [=] {
            const auto whole = Kokkos::create_mirror_view_and_copy(
                Kokkos::HostSpace(), to_global(redistribute(*tensor, after)));
            Size wrong = 0;
            for (Size i = 0; i < side * side; ++i)
              if (whole(i) != Counting{}(i)) ++wrong;
            return wrong;
          }};
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

void add_messages(MicroContext& context, std::size_t axis, Size bytes) {
  const Mesh mesh = context.mesh();
  const std::string& name = mesh.shape().axes()[axis].name;
  const Size elements = std::max<Size>(1, bytes / 4);
  context.add(fmt::format("tessera/ping_pong/axis:{}/bytes:{}", name, elements * 4),
              [=] { return ping_pong(mesh.axis(name), elements); });
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
    for (const Size bytes : context.options().bytes) add_messages(context, axis, bytes);
  }
  const Communicator world = context.mesh().world();
  context.add("empty_step", [=] { return empty_step(world); });
}

}  // namespace tessera::bench
