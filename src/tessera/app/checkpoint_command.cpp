// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <tessera/app/commands.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/checkpoint_text.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/process/standard_streams.hpp>

namespace tessera {

namespace {

template <Named Enum>
Enum named(const char* flag, const std::string& name) {
  const std::optional<Enum> value = value_named<Enum>(name);
  if (!value) throw ConfigError(flag, name, "must be one of " + join(names_of<Enum>));
  return *value;
}

std::string saved_as(const CheckpointOptions& options) {
  const auto format = named<ExportFormat>("--format", options.format);
  const auto names = named<ExportNames>("--names", options.names);
  const std::string to =
      !options.to.empty()
          ? options.to
          : std::filesystem::path(options.file).replace_extension(name_of(format)).string();
  check_writable("-o", to);
  std::error_code unused;
  if (std::filesystem::equivalent(options.file, to, unused))
    throw ConfigError("-o", to, "must be another file than the checkpoint");
  const std::size_t arrays = export_parameters(options.file, to, format, names);
  return fmt::format("{}: {} from {}\n", to, counted(static_cast<Size>(arrays), "array"),
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
      print_output(saved_as(options));
      break;
  }
  return ExitCode::ok;
}

}  // namespace tessera
