// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <tessera/base/fields.hpp>
#include <tessera/config/config.hpp>

namespace tessera {

/// A key of the configuration, such as "training.batch_size".
using Setting = Field<Config>;

/// Returns all settings, grouped by section, in the order in which they are printed.
const Fields<Config>& settings();

/// Returns the tables of all keys in Markdown, one per tier: the page KEYS.md.
std::string table_of_keys();

/// Returns the row of a known key.
const Setting& setting_of(std::string_view key);

/// Returns true if the value of this key, or of this entry of a table, is free text; false for
/// unknown keys.
bool is_text(const std::string& key);

/// Returns our key for a setting that other programs call `name`, with a value if it is a strategy,
/// as in "distributed.strategy=fsdp", or "the mesh axis data"; "" if there is none.
std::string key_of_other_tool(std::string_view name);

/// Returns what an unknown key, with or without its section, may stand for: key_of_other_tool(), or
/// else the nearest key; "" if none is near.
std::string suggest_key(std::string_view given);

/// Sets a key or an entry of a table. Throws ConfigError for an unknown key, with the nearest known
/// one, and for keys that the launcher decides.
void set(Config& config, const std::string& key, const nlohmann::json& value);

/// Checks every setting by itself. validate() checks them together.
void check_settings(const Config& config);

}  // namespace tessera
