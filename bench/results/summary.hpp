// SPDX-License-Identifier: Apache-2.0
// What follows from the results of a study's cases together (bench/RESULTS.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "measure/rounds.hpp"
#include "results/results_directory.hpp"

namespace tessera::bench {

/// Whether a result, or its row, has a speed: "ok", or "unverified" where there was nothing to hold
/// its losses against.
bool is_measured(const nlohmann::json& result);

/// A study's document and its cases' results by id, as read from a directory.
struct Results {
  nlohmann::json study;
  std::vector<nlohmann::json> cases;  ///< in the order of the study; "pending" where there is none
  std::map<std::string, std::vector<std::vector<double>>> steps{};  ///< by round
};
Results read_results(const ResultsDirectory& directory);

/// The document summary.json: rows with speed-up and efficiency, counts, best case, verdict and the
/// exit code that it stands for.
nlohmann::json summarize_study(const Results& results);

/// Writes summary.json, cases.csv and steps.csv, and returns the summary.
nlohmann::json write_summary(const ResultsDirectory& directory);

/// Sets the baseline, speed-up and efficiency of every row that has one, from the rounds that both
/// have of a launch.
void add_scaling(std::vector<nlohmann::json>& rows, const Results& results);

/// The rounds of a case; none unless it is ok.
std::vector<Round> rounds_of(const nlohmann::json& result);

std::string cases_csv(const nlohmann::json& summary);
std::string steps_csv(const Results& results);

}  // namespace tessera::bench
