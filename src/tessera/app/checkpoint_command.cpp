// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <fmt/format.h>

#include <tessera/app/commands.hpp>
#include <tessera/base/standard_streams.hpp>
#include <tessera/base/text.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/checkpoint_text.hpp>

namespace tessera {
namespace {

std::string verified(const std::string& file) {
  return fmt::format("{}: whole: {} B of arrays are what was written\n", file,
                     with_thousands(verify_checkpoint(file)));
}

}  // namespace

ExitCode checkpoint_command(const CheckpointOptions& options) {
  switch (options.action) {
    case CheckpointAction::show:
      print_output(checkpoint_text(options.file));
      break;
    case CheckpointAction::verify:
      print_output(verified(options.file));
      break;
  }
  return ExitCode::ok;
}

}  // namespace tessera
