// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

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

}  // namespace tessera
