// SPDX-License-Identifier: Apache-2.0
#include <tessera/app/commands.hpp>
#include <tessera/base/provenance.hpp>
#include <tessera/base/standard_streams.hpp>
#include <tessera/comm/backend.hpp>

namespace tessera {

ExitCode info_command(Runtime& runtime) {
  const BackendChoice choice = choose_backend(Backend::automatic, backend_facts());
  const std::string text = provenance_text(collect_provenance(runtime, message_library(choice)));
  if (runtime.world_rank() == 0) print_output(text);
  return ExitCode::ok;
}

}  // namespace tessera
