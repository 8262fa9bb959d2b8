// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "document/document.hpp"

namespace tessera::bench {

/// One of the two results directories of a comparison.
struct ComparedSide {
  std::string directory;
  std::string program;  ///< that measured it

  TESSERA_FIELDS(directory, program);
};

struct ComparedCase {
  std::string label;
  std::optional<double> before_step_seconds, after_step_seconds;
  std::optional<double> ratio, detectable_ratio;
  std::string verdict;

  TESSERA_FIELDS(label, before_step_seconds, after_step_seconds, ratio, detectable_ratio, verdict);
};

/// A comparison of two results directories (bench/RESULTS.md, "compare --json").
struct Comparison {
  ComparedSide before, after;
  std::optional<double> machine_ratio;
  Size compared = 0;
  bool regressed = false;
  std::map<std::string, Size> counts;  ///< of cases by verdict
  std::vector<ComparedCase> cases;

  static void fields(auto& f, auto& v) {
    f("schema_version", written(1), "before", v.before, "after", v.after, "machine_ratio",
      v.machine_ratio, "compared", v.compared, "regressed", v.regressed, "counts", v.counts,
      "cases", v.cases);
  }
};

/// Compares the cases of two results directories, matched by their factors. A case is "better" or
/// "worse" if a permutation test of its rounds, corrected for the number of cases, is significant
/// and the change is at least 3 %, else "indistinguishable". Throws Error (usage) if the
/// directories have no case in common.
Comparison compare_results(const std::string& before, const std::string& after);
/// Returns the comparison as a table.
std::string comparison_text(const Comparison& comparison);

/// Returns the number of cases with each verdict: "2 better, 1 worse".
std::string counts_text(const std::map<std::string, Size>& counts);

/// Compares a study's rounds with each other and returns how often such a comparison is wrong.
/// Throws Error (usage) if there are too few rounds.
std::string compare_with_itself(const std::string& directory);

}  // namespace tessera::bench
