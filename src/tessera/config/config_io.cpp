// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/base/toml_value.hpp>
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

/// Returns the section and the name of a key.
std::pair<std::string, std::string> parts_of(const std::string& key) {
  const std::size_t dot = key.find('.');
  return {key.substr(0, dot), key.substr(dot + 1)};
}

std::string_view title_of(Tier tier) {
  if (tier == Tier::common) return "Keys that everyone needs";
  return tier == Tier::expert ? "Keys for experts" : "Keys for work on Tessera itself";
}

/// Returns the settings of each section in the order of their tiers.
std::vector<const Setting*> settings_by_tier() {
  std::vector<const Setting*> sorted;
  for (const Setting& setting : settings()) sorted.push_back(&setting);
  std::map<std::string, Size> sections;
  for (const Setting& setting : settings())
    sections.try_emplace(parts_of(setting.key).first, static_cast<Size>(sections.size()));
  std::ranges::stable_sort(sorted, {}, [&](const Setting* setting) {
    return std::pair(sections.at(parts_of(setting->key).first), setting->tier);
  });
  return sorted;
}

/// Returns the type and the bounds, as in "an integer, positive".
std::string values_text(const Setting& setting) {
  const Bounds& bounds = setting.bounds;
  const bool is_bounded = bounds.least > -HUGE_VAL, has_most = bounds.most < HUGE_VAL;
  if (!is_bounded || setting.type.find(" from ") != setting.type.npos) return setting.type;
  if (bounds.allowed != nullptr)
    return setting.type + ", " + std::string(bounds.allowed).substr(std::string("must be ").size());
  std::string text = setting.type + (bounds.above ? ", positive" : ", not negative");
  return text += has_most ? ", at most " + with_thousands(static_cast<Size>(bounds.most)) : "";
}

std::string default_text(const Setting& setting) {
  return setting.standard.is_null() ? "unset" : fmt::format("`{}`", to_toml(setting.standard));
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
  std::string text, section;
  Tier tier = Tier::common;
  for (const Setting* setting : settings_by_tier()) {
    const auto [its_section, name] = parts_of(setting->key);
    if (its_section != section) {
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", its_section);
      section = its_section;
      tier = Tier::common;
    }
    if (setting->tier != tier) text += fmt::format("# {}\n", title_of(setting->tier));
    tier = setting->tier;
    const nlohmann::json value = setting->get(config);
    const std::string assignment =
        value.is_null() ? "# " + name + " is unset" : name + " = " + to_toml(value);
    text += fmt::format("{:<36} # {}\n", assignment, setting->comment());
  }
  return text;
}

std::string table_of_keys() {
  std::string text;
  for (const Tier tier : {Tier::common, Tier::expert, Tier::internal}) {
    text += fmt::format("{}## {}\n\n| key | values | default | meaning |\n|---|---|---|---|\n",
                        text.empty() ? "" : "\n", title_of(tier));
    for (const Setting& setting : settings())
      if (setting.tier == tier)
        text += fmt::format("| `{}` | {} | {} | {} |\n", setting.key, values_text(setting),
                            default_text(setting), setting.meaning);
  }
  return text;
}

nlohmann::json config_as_json(const Config& config) {
  nlohmann::json tree = nlohmann::json::object();
  for (const Setting& setting : settings()) {
    const auto [section, name] = parts_of(setting.key);
    const nlohmann::json value = setting.get(config);
    if (!value.is_null()) tree[section][name] = value;
  }
  return tree;
}

}  // namespace tessera
