// SPDX-License-Identifier: Apache-2.0
#include <tessera/app/commands.hpp>
#include <tessera/base/provenance.hpp>
#include <tessera/base/standard_streams.hpp>
#include <tessera/comm/comm_options.hpp>

namespace tessera {

ExitCode info_command(Runtime& runtime) {
  const std::string text = provenance_text(collect_provenance(runtime, nccl_version()));
  if (runtime.world_rank() == 0) print_output(text);
  return ExitCode::ok;
}

}  // namespace tessera
