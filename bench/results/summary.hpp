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

/// The median of ratios of rounds, each corrected for the speed of the machine, with its interval.
struct CorrectedRatio {
  std::optional<double> median, low, high;
};

/// A row of the summary: a result, and its numbers relative to other results.
struct SummaryRow {
  CaseResult result;  ///< without the times of a case that was not measured
  double batch_per_rank = 0;
  std::optional<double> final_loss;
  /// FLOP/s of matrix products on all ranks: the best that was measured beside any case of this
  /// type on as many ranks and threads. MFU is relative to it.
  std::optional<double> gemm_peak_flops_per_second, mfu;
  std::string scaling;
  std::string baseline;  ///< id of the case; empty: none
  std::optional<Size> baseline_ranks;
  std::optional<double> baseline_step_seconds;
  std::optional<double> speedup, efficiency;  ///< of the samples per second
  CorrectedRatio corrected_speedup;
  std::string standing;         ///< among the cases of the same work: "fastest", "tied" or empty
  CorrectedRatio over_fastest;  ///< time for a sample, over that of the fastest of the same work

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
  MachineDrift machine;
  std::vector<SummaryRow> cases;
};
void to_json(nlohmann::json& json, const Summary& summary);
Summary summarize_study(const Results& results);

/// Writes summary.json, cases.csv and steps.csv, and returns the summary.
Summary write_summary(const ResultsDirectory& directory);

/// Sets what a row is relative to the baseline and to the fastest case of the same work, and its
/// MFU. Corrected ratios need rounds of both cases in the same launch.
void relate_rows(std::vector<SummaryRow>& rows, const Study& study);

/// Returns the rounds of a case, or none if it was not measured.
std::vector<Round> rounds_of(const CaseResult& result);

std::string cases_csv(const Summary& summary);
std::string steps_csv(const Results& results);

}  // namespace tessera::bench
