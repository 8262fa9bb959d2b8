// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/config/config_io.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/toml_text.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/tensor/mesh_shape.hpp>

namespace tessera {
namespace {

void set_axes(DistributedConfig& config, const std::string& text) {
  config.mesh_shape.clear();
  config.mesh_axis_names.clear();
  for (const Axis& axis : parse_axes(text)) {
    config.mesh_shape.push_back(axis.size);
    config.mesh_axis_names.push_back(axis.name);
  }
}

}  // namespace

Config load_config(const ConfigSource& source) {
  Config config;
  for (const GivenValue& given : parse_toml(read_text(source.file), source.file))
    set(config, given.key, given.value);
  std::vector<std::string> assignments = source.overrides;
  if (source.strategy) assignments.push_back("distributed.strategy=" + *source.strategy);
  if (source.ranks_expected)
    assignments.push_back("distributed.world_size=" + *source.ranks_expected);
  for (const std::string& assignment : assignments) {
    const GivenValue given = parse_assignment(assignment, is_text);
    set(config, given.key, given.value);
  }
  if (source.mesh) set_axes(config.training.distributed, *source.mesh);
  if (source.check_collectives) config.comm.check_collectives = true;
  check_settings(config);
  return config;
}

std::string config_as_toml(const Config& config) {
  std::string text;
  std::string section;
  for (const Setting& setting : settings()) {
    const std::size_t dot = setting.key.find('.');
    if (setting.key.substr(0, dot) != section) {
      section = setting.key.substr(0, dot);
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    }
    const nlohmann::json value = setting.get(config);
    const std::string name = setting.key.substr(dot + 1);
    const std::string assignment =
        value.is_null() ? "# " + name + " is unset" : name + " = " + to_toml(value);
    text += fmt::format("{:<36} # {}\n", assignment, setting.doc);
  }
  return text;
}

nlohmann::json config_as_json(const Config& config) {
  nlohmann::json tree = nlohmann::json::object();
  for (const Setting& setting : settings()) {
    const std::size_t dot = setting.key.find('.');
    const nlohmann::json value = setting.get(config);
    if (!value.is_null()) tree[setting.key.substr(0, dot)][setting.key.substr(dot + 1)] = value;
  }
  return tree;
}

}  // namespace tessera
