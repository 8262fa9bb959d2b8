// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/standard_streams.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/mesh/mesh_shape.hpp>
#include <tessera/train/config_agreement.hpp>
#include <tessera/train/config_rules.hpp>
#include <tessera/train/inspect_command.hpp>

namespace tessera {

ExitCode inspect_command(Runtime& runtime, const InspectOptions& options) {
  const Communicator world = Communicator::world();
  const Config config = agreed_config(world, options.source);
  collectively(world, [&] {
    if (runtime.world_rank() == 0)
      print_output("Mesh " + resolve_mesh(config, runtime.world_size()).to_string() + "\n");
  });
  return ExitCode::ok;
}

}  // namespace tessera
