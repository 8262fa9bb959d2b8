// SPDX-License-Identifier: Apache-2.0
#include <tessera/app/commands.hpp>
#include <tessera/comm/backend.hpp>
#include <tessera/comm/nodes.hpp>
#include <tessera/process/provenance.hpp>
#include <tessera/process/standard_streams.hpp>
#include <tessera/tensor/topology.hpp>

namespace tessera {

ExitCode info_command(Runtime& runtime) {
  const BackendChoice choice = choose_backend(Backend::automatic, backend_facts());
  const Topology topology(node_of_ranks(Communicator::world()));
  const std::string text =
      provenance_text(collect_provenance(runtime, message_library(choice), nodes_text(topology)));
  if (runtime.world_rank() == 0) print_output(text);
  return ExitCode::ok;
}

}  // namespace tessera
