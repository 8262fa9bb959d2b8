// SPDX-License-Identifier: Apache-2.0
// The summary of a study's results (bench/RESULTS.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include <tessera/base/error.hpp>

#include "results/results_directory.hpp"

namespace tessera::bench {

/// The results of a study.
struct Results {
  Study study;                    ///< as far as its document has it
  std::vector<CaseResult> cases;  ///< in the order of the study; "pending" without a result
  std::map<std::string, std::vector<std::vector<double>>> steps{};  ///< step times by id and round
};
Results read_results(const ResultsDirectory& directory);

/// A row of the summary: a result, and its numbers relative to other results.
struct SummaryRow {
  CaseResult result;  ///< without the times of a case that was not measured
  double batch_per_rank = 0;
  std::optional<double> final_loss;
  std::string scaling;
  std::string baseline;  ///< id of the case; empty: none
  std::optional<Size> baseline_ranks;
  std::optional<double> baseline_step_seconds;
  std::optional<double> speedup, speedup_low, speedup_high;
  std::optional<double> efficiency, efficiency_low, efficiency_high;

  /// Returns the mean rank's share of a part in the instrumented step.
  std::optional<double> share_of_step(std::initializer_list<Share Breakdown::*> parts) const;
};

/// The state of the machine during a study.
struct MachineDrift {
  std::optional<double> drift, resolution;
  std::optional<Size> rounds;  ///< of the case with the fewest

  TESSERA_FIELDS(drift, resolution, rounds);
};

/// The document summary.json.
struct Summary {
  std::string study, result;
  ExitCode exit_code = ExitCode::ok;
  std::map<std::string, Size> counts;  ///< by status
  std::string best;                    ///< id of the fastest case; empty: none
  std::vector<std::string> ties;
  MachineDrift machine;
  std::vector<SummaryRow> cases;
};
void to_json(nlohmann::json& json, const Summary& summary);
Summary summarize_study(const Results& results);

/// Writes summary.json, cases.csv and steps.csv, and returns the summary.
Summary write_summary(const ResultsDirectory& directory);

/// Sets baseline, speed-up and efficiency of every row that has a baseline, from the rounds that
/// both have in the same launch.
void add_scaling(std::vector<SummaryRow>& rows, const Study& study);

/// Returns the rounds of a case, or none if it was not measured.
std::vector<Round> rounds_of(const CaseResult& result);

std::string cases_csv(const Summary& summary);
std::string steps_csv(const Results& results);

}  // namespace tessera::bench
