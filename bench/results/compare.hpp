// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace tessera::bench {

/// The cases of two directories of results (bench/RESULTS.md, "compare --json"), matched by their
/// factors: "better" or "worse" where a permutation test over their rounds, corrected for the
/// number of cases, and a change of at least 3 % say so, else "indistinguishable"; and the smallest
/// change that would have been found. Throws Error (usage) if they have no case in common.
nlohmann::json compare_results(const std::string& before, const std::string& after);
/// The same as a table.
std::string comparison_text(const nlohmann::json& comparison);

/// How many cases have which verdict: "2 better, 1 worse".
std::string counts_text(const nlohmann::json& counts);

/// How often that would be wrong: a study's own rounds against each other. Throws Error (usage) if
/// there are too few.
std::string compare_with_itself(const std::string& directory);

}  // namespace tessera::bench
