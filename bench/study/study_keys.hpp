// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "study/study.hpp"

namespace tessera::bench {

/// Sets one key of a study, "measure.steps"; false if it is none of a study's own. Throws
/// ConfigError for a wrong value.
bool set_study_key(Study& study, const std::string& key, const nlohmann::json& value);

/// The keys of a study's own.
std::vector<std::string> study_keys();

/// Names of factors that are no configuration keys: strategy, mesh, ranks, ...
const std::vector<std::string>& factor_names();

/// [[grid]] and [[exclude]], with dotted keys flattened; `key` is named in errors.
Grid parse_grid(const std::string& key, const nlohmann::json& table);
Exclusion parse_exclusion(const std::string& key, const nlohmann::json& table);

}  // namespace tessera::bench
