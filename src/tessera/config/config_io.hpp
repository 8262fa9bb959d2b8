// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/config/config.hpp>

namespace tessera {

/// Where a configuration comes from, weakest first: the file, key=value overrides, short flags.
struct ConfigSource {
  std::string file{};
  std::vector<std::string> overrides{};         ///< "training.batch_size=64"
  std::optional<std::string> mesh{};            ///< "data=4": replaces shape and names together
  std::optional<std::string> strategy{};        ///< distributed.strategy
  std::optional<std::string> ranks_expected{};  ///< distributed.world_size
  bool check_collectives = false;               ///< true: comm.check_collectives = true
};

/// Reads the file and applies the overrides and flags. Every setting by itself is checked, the
/// rules between them by validate(). Throws Error with exit code usage: a file that cannot be read
/// or is not TOML, unknown keys, wrong types and values.
Config load_config(const ConfigSource& source);

/// The configuration as a TOML document; reading it back gives the same.
std::string config_as_toml(const Config& config);

/// The same as nested objects, unset keys left out.
nlohmann::json config_as_json(const Config& config);

}  // namespace tessera
