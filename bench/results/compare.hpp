// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tessera::bench {

/// A table of the cases of two directories of results, matched by their factors: "better" or
/// "worse" where a permutation test over their rounds, corrected for the number of cases, and a
/// change of at least 3 % say so, else "indistinguishable"; and the smallest change that would have
/// been found.
std::string compare_results(const std::string& before, const std::string& after);

/// How often that would be wrong: a study's own rounds against each other.
std::string compare_with_itself(const std::string& directory);

}  // namespace tessera::bench
