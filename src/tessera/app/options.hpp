// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/config/config_source.hpp>

namespace tessera {

/// Of `tessera run`.
struct TrainOptions {
  ConfigSource source{};
  std::string json{};  ///< file for the results; empty: none
  bool quiet = false;
  bool print_config = false;  ///< print the resolved configuration and train nothing
};

struct PlanOptions {
  ConfigSource source{};
  std::string json{};  ///< file for the plan; empty: none
};

/// Shows what each rank holds.
struct InspectOptions {
  ConfigSource source{};
};

}  // namespace tessera
