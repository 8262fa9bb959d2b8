// SPDX-License-Identifier: Apache-2.0
// The summary of a study's results (bench/RESULTS.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "measure/rounds.hpp"
#include "results/results_directory.hpp"

namespace tessera::bench {

/// The results of a study.
struct Results {
  nlohmann::json study;
  std::vector<CaseResult> cases;  ///< in the order of the study; "pending" without a result
  std::map<std::string, std::vector<std::vector<double>>> steps{};  ///< step times by id and round
};
Results read_results(const ResultsDirectory& directory);

/// Returns the document summary.json: rows with speed-up and efficiency, counts, best case, verdict
/// and exit code.
nlohmann::json summarize_study(const Results& results);

/// Writes summary.json, cases.csv and steps.csv, and returns the summary.
nlohmann::json write_summary(const ResultsDirectory& directory);

/// Sets baseline, speed-up and efficiency of every row that has a baseline, from the rounds that
/// both have in the same launch.
void add_scaling(std::vector<nlohmann::json>& rows, const Results& results);

/// Returns the rounds of a case, or none if it was not measured.
std::vector<Round> rounds_of(const CaseResult& result);

std::string cases_csv(const nlohmann::json& summary);
std::string steps_csv(const Results& results);

}  // namespace tessera::bench
