// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace tessera::bench {

/// "better", "worse" or "indistinguishable": confidence intervals of the median step that do not
/// touch, and medians at least 3 % apart. None if one of the results has no such interval.
std::optional<std::string> compare_steps(const nlohmann::json& before, const nlohmann::json& after);

/// A table of the cases of two directories of results, matched by their factors.
std::string compare_results(const std::string& before, const std::string& after);

}  // namespace tessera::bench
