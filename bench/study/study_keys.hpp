// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/config/toml_text.hpp>

#include "study/study.hpp"

namespace tessera::bench {

/// Sets one key of a study or of the configuration that its cases start from: "measure.steps",
/// "model.seed", "grid". Throws ConfigError for an unknown key and for a wrong value.
void set(Study& study, const GivenValue& given);

/// Returns true if the value of this key is free text; false for unknown keys.
bool is_text(const std::string& key);

/// Returns the names of factors that are no configuration keys: strategy, mesh, ranks, ...
const std::vector<std::string>& factor_names();

}  // namespace tessera::bench
