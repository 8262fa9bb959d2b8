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
void add_ping_pong(MicroContext& context, const Axis& axis, Size bytes) {
  const Communicator ranks = context.mesh().axis(axis.name);
  const Vector<float> v("tessera::bench::message", std::max<Size>(1, bytes / 4));
  const int partner = ranks.rank() % 2 == 0 ? ranks.rank() + 1 : ranks.rank() - 1;
  const double payload = static_cast<double>(v.extent(0)) * sizeof(float);
  context.add(fmt::format("tessera/ping_pong/axis:{}/bytes:{:.0f}", axis.name, payload),
              [=] {
                if (partner >= ranks.size()) return;
                if (ranks.rank() < partner) {
                  ranks.send(v, partner, 0);
                  ranks.receive(v, partner, 1);
                } else {
                  ranks.receive(v, partner, 0);
                  ranks.send(v, partner, 1);
                }
              },
              {{"algbw_bytes_per_second", 2 * payload}});
}

void add_redistribution(MicroContext& context, std::size_t axis, Size bytes, Placement from,
                        Placement to) {
  const Mesh& mesh = context.mesh();
  const Size side = std::max<Size>(1, static_cast<Size>(std::sqrt(static_cast<double>(bytes) / 4)));
  Placements before(mesh.shape().num_axes()), after(mesh.shape().num_axes());
  before[axis] = from;
  after[axis] = to;
  const auto tensor = std::make_shared<ShardedTensor<float>>(
      from_function<float>(mesh, {side, side}, before, Counting{}));
  const double payload = static_cast<double>(side * side) * sizeof(float);
  context.add_checked(
      fmt::format("redistribute/{}_to_{}/axis:{}/bytes:{:.0f}", to_string(from), to_string(to),
                  mesh.shape().axes()[axis].name, payload),
      [=] { redistribute(*tensor, after); },
      [=] {
        const auto whole = Kokkos::create_mirror_view_and_copy(
            Kokkos::HostSpace(), to_global(redistribute(*tensor, after)));
        Size wrong = 0;
        for (Size i = 0; i < side * side; ++i)
          if (whole(i) != Counting{}(i)) ++wrong;
        return wrong;
      },
      {{"algbw_bytes_per_second", payload}});
}

/// One sample a rank, one weight: what a step costs beside its work.
void add_empty_step(MicroContext& context) {
  const Communicator& world = context.mesh().world();
  Config config;
  config.model.mlp.widths = {1, 1};
  config.data.samples = config.training.batch_size = world.size();
  const auto run = std::make_shared<CaseRun<float>>(config, world);
  context.add_timed("empty_step", [=](Size iterations) {
    run->time_steps(5);
    return run->time_steps(iterations);
  });
}

}  // namespace

void add_mesh_benchmarks(MicroContext& context) {
  const MeshShape& shape = context.mesh().shape();
  for (std::size_t a = 0; a < shape.num_axes(); ++a) {
    if (shape.axes()[a].size == 1) continue;
    for (const Size bytes : context.options().bytes) {
      add_ping_pong(context, shape.axes()[a], bytes);
      const auto shard = Placement::shard(0);
      add_redistribution(context, a, bytes, shard, Placement::replicate());
      add_redistribution(context, a, bytes, Placement::replicate(), shard);
      add_redistribution(context, a, bytes, shard, Placement::shard(1));
      add_redistribution(context, a, bytes, Placement::partial(), Placement::replicate());
      add_redistribution(context, a, bytes, Placement::partial(), shard);
    }
  }
  add_empty_step(context);
}

}  // namespace tessera::bench
