// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/config/config.hpp>

namespace tessera {

/// One key of the configuration. Reading files and flags, printing, checking single values and
/// naming unknown keys all go through the table of these.
struct Setting {
  std::string key;  ///< "section.name"
  std::string doc;  ///< half a line, printed beside the value
  /// Throws ConfigError for a value of the wrong type.
  std::function<void(Config&, const nlohmann::json&)> set;
  /// null when the setting is unset.
  std::function<nlohmann::json(const Config&)> get;
  /// Throws ConfigError for a value that no run can have, whatever the other settings are.
  std::function<void(const Config&)> check;
  /// Of a table: sets one entry, "section.name.entry", and leaves the others. Empty for the rest.
  std::function<void(Config&, const std::string&, const nlohmann::json&)> set_entry{};
  bool is_text = false;  ///< its value, or each entry of a table, is any string
};

/// All settings, those of a section together, in the order in which they are printed.
const std::vector<Setting>& settings();

/// The row of a key that there is.
const Setting& setting_of(std::string_view key);

/// Returns true if the value of this key, or of this entry of a table, is free text; false for
/// unknown keys.
bool is_text(const std::string& key);

/// Throws ConfigError for an unknown key with the nearest known one, and for keys that other tools
/// keep in their files but that the launcher decides here.
void set(Config& config, const std::string& key, const nlohmann::json& value);

/// Checks every setting by itself. The rules between settings are in config_rules.hpp.
void check_settings(const Config& config);

}  // namespace tessera
