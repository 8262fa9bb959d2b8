// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace tessera::bench {

/// Compares the cases of two results directories, matched by their factors (bench/RESULTS.md,
/// "compare --json"). A case is "better" or "worse" if a permutation test of its rounds, corrected
/// for the number of cases, is significant and the change is at least 3 %, else
/// "indistinguishable". Throws Error (usage) if the directories have no case in common.
nlohmann::json compare_results(const std::string& before, const std::string& after);
/// Returns the comparison as a table.
std::string comparison_text(const nlohmann::json& comparison);

/// Returns the number of cases with each verdict: "2 better, 1 worse".
std::string counts_text(const nlohmann::json& counts);

/// Compares a study's rounds with each other and returns how often such a comparison is wrong.
/// Throws Error (usage) if there are too few rounds.
std::string compare_with_itself(const std::string& directory);

}  // namespace tessera::bench
