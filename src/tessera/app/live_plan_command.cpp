// SPDX-License-Identifier: Apache-2.0
#include <tessera/app/commands.hpp>
#include <tessera/app/live_tensors.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/nodes.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/config/config_agreement.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/process/standard_streams.hpp>
#include <tessera/tensor/mesh_layout.hpp>

namespace tessera {
namespace {

/// Allocates the tensors of a run as training does, reads them back and prints them on rank 0.
template <class T>
void show_live_tensors(const Communicator& world, const Config& config, const Topology& topology) {
  const Mesh mesh(world, resolve_mesh(config, topology));
  const Plan plan =
      collectively(world, [&] { return make_plan(plan_input(config, mesh.shape())); });
  const auto data = collectively(
      world, [&] { return Dataset<StateOf<T>>::generate(plan, mesh.rank(), config.data); });
  const Engine<T> engine(plan, mesh, StepOptions::of(config.training));
  const std::vector<nlohmann::json> ranks =
      gather_json(world, describe_live_tensors(plan, mesh.rank(), engine, data));
  collectively(world, [&] {
    if (world.rank() == 0)
      print_output(visualize_mesh(mesh.shape()) + nodes_line(topology, mesh.shape()) +
                   live_tensors_text(plan, ranks));
  });
}

}  // namespace

ExitCode live_plan_command(const ConfigSource& source) {
  const Config config = agreed_config(Communicator::world(), source);
  const Communicator world = Communicator::world(config.comm);
  const Topology topology(node_of_ranks(world));
  check_nodes(config.training.distributed, topology);
  collectively(world, [&] { check_threads(config.training.distributed, Kokkos::num_threads()); });
  with_compute_type(compute_type(config),
                    [&](auto t) { show_live_tensors<decltype(t)>(world, config, topology); });
  return ExitCode::ok;
}

}  // namespace tessera
