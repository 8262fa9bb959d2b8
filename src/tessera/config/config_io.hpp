// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/config/config.hpp>

namespace tessera {

/// The sources of a configuration. Later ones win: file, overrides, flags.
struct ConfigSource {
  std::string file{};
  std::vector<std::string> overrides{};         ///< "training.batch_size=64"
  std::optional<std::string> mesh{};            ///< "data=4": replaces shape and names together
  std::optional<std::string> strategy{};        ///< distributed.strategy
  std::optional<std::string> ranks_expected{};  ///< distributed.world_size
  std::optional<Size> as_rank{};                ///< see CommOptions::fake
  bool check_collectives = false;               ///< true: comm.check_collectives = true
};

/// Reads the file, applies overrides and flags, and checks every setting by itself; validate()
/// checks them together. Throws Error (usage) for a file that cannot be read or is not TOML, and
/// for unknown keys and wrong values.
Config load_config(const ConfigSource& source);

/// Returns the configuration as a TOML document. Reading it gives the same configuration.
std::string config_as_toml(const Config& config);

/// Returns the configuration as nested objects without unset keys.
nlohmann::json config_as_json(const Config& config);

}  // namespace tessera
