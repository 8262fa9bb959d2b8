// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <tessera/app/commands.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/checkpoint/inspection.hpp>
#include <tessera/io/file_uses.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/process/standard_streams.hpp>

namespace tessera {
namespace {

std::string exported(const CheckpointOptions& options) {
  const auto names = value_named<ExportNames>(options.names);
  if (!names)
    throw ConfigError("--names", options.names,
                      must_be_one_of(options.names, names_of<ExportNames>));
  if (!options.dtype.empty() &&
      std::ranges::find(export_types, options.dtype) == export_types.end())
    throw ConfigError("--dtype", options.dtype, must_be_one_of(options.dtype, export_types));
  const bool in_directory = *names == ExportNames::huggingface;
  std::filesystem::path to = options.to;
  if (to.empty()) {
    to = options.file;
    to.replace_extension(std::string(name_of(*names)) + (in_directory ? "" : ".safetensors"));
  }
  if (in_directory) to /= "model.safetensors";
  check_distinct({{"checkpoint", options.file}, {"-o", to, true}});
  if (!in_directory) check_writable("-o", to);
  const std::size_t arrays = export_parameters(options.file, to.string(), *names,
                                               value_named<DType>(options.dtype), options.select);
  return fmt::format("{}: {} from {}\n", to.string(), counted(static_cast<Size>(arrays), "array"),
                     options.file);
}

std::string verified(const std::string& file) {
  return fmt::format("{}: intact: {} B of arrays match their checksums\n", file,
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
    case CheckpointAction::save_as:
      print_output(exported(options));
      break;
  }
  return ExitCode::ok;
}

}  // namespace tessera
