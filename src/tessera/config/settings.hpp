// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/config/config.hpp>

namespace tessera {

/// One key of the configuration. Files, flags, printing, checks of single values and hints for
/// unknown keys all use the table of these rows.
struct Setting {
  std::string key;  ///< "section.name"
  std::string doc;  ///< half a line, printed beside the value
  /// Throws ConfigError for a value of the wrong type.
  std::function<void(Config&, const nlohmann::json&)> set;
  /// Returns null if the setting is unset.
  std::function<nlohmann::json(const Config&)> get;
  /// Throws ConfigError for a value that is wrong whatever the other settings are.
  std::function<void(const Config&)> check;
  bool is_text = false;  ///< the value, or each entry of a table, may be any string
};

/// Returns all settings, grouped by section, in the order in which they are printed.
const std::vector<Setting>& settings();

/// Returns the row of a known key.
const Setting& setting_of(std::string_view key);

/// Returns true if the value of this key, or of this entry of a table, is free text; false for
/// unknown keys.
bool is_text(const std::string& key);

/// Returns the key of what other programs call `name`, with a value if it is a strategy, as in
/// "distributed.strategy=fsdp", or "the mesh axis data"; "" if there is none.
std::string key_of_other_tool(std::string_view name);

/// Returns what an unknown key, with or without its section, may stand for: key_of_other_tool(), or
/// else the nearest key; "" if none is near.
std::string suggest_key(std::string_view given);

/// Sets a key or an entry of a table. Throws ConfigError for an unknown key, with the nearest known
/// one, and for keys that the launcher decides.
void set(Config& config, const std::string& key, const nlohmann::json& value);

/// Checks every setting by itself. The rules between settings are in config_rules.hpp.
void check_settings(const Config& config);

}  // namespace tessera
