// SPDX-License-Identifier: Apache-2.0
// The summary of a study's results (bench/RESULTS.md), and the comparison of two.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/base/error.hpp>

#include "document/document.hpp"
#include "results/journal.hpp"
#include "results/results_directory.hpp"

namespace tessera::bench {

/// The results of a study.
struct Results {
  Study study;                    ///< with the members of its document
  std::vector<CaseResult> cases;  ///< in the order of the study; "pending" without a result
  std::map<std::string, std::vector<std::vector<double>>> steps{};  ///< step times by id and round
};
/// Derives the results of a study from its journals.
Results derive_results(StudyCases study, const Journals& journals);
Results read_results(const ResultsDirectory& directory);

/// A row of the summary: a result, and its numbers relative to other results.
struct SummaryRow {
  CaseResult result;  ///< without the times of a case that was not measured
  double batch_per_rank = 0;
  std::optional<double> final_loss;
  /// FLOP/s of matrix products on all ranks: the best that was measured beside any case of this
  /// type on as many ranks and threads. MFU is relative to it.
  std::optional<double> gemm_peak_flops_per_second, mfu;
  std::string scaling;
  /// The case that stands for all cases that are the same program on one rank; empty: none. A row
  /// with one has no baseline and no standing, because its differences from that case are noise.
  std::string same_program_as;
  std::string baseline;  ///< id of the case; empty: none
  std::optional<Size> baseline_ranks;
  std::optional<double> baseline_step_seconds;
  std::optional<double> speedup, efficiency;  ///< of the samples per second
  /// Statistics of ratios of rounds, each corrected for the speed of the machine.
  std::optional<Statistics> corrected_speedup;
  /// Among the cases of the same work: "fastest", "tied" or empty. Empty if times are unreliable.
  std::string standing;
  /// The same for the time per sample: this case over the fastest case of the same work.
  std::optional<Statistics> over_fastest;

  /// Returns a time of the mean rank as a fraction of the instrumented step.
  std::optional<double> share_of_step(std::initializer_list<Share Breakdown::*> parts) const;
};

/// The state of the machine during a study.
struct MachineDrift {
  std::optional<double> drift, resolution;
  std::optional<Size> rounds;           ///< of the case with the fewest
  std::optional<bool> timing_reliable;  ///< unset for simulated cases
  std::string problem;                  ///< why it is not

  TESSERA_FIELDS(drift, resolution, rounds, timing_reliable, problem);
};

/// The largest drift and resolution with which times are reliable.
inline constexpr double most_drift = 0.5, most_resolution = 0.25;

/// The document summary.json.
struct Summary {
  std::string study, result;
  ExitCode exit_code = ExitCode::ok;
  std::map<std::string, Size> counts;  ///< by status
  MachineDrift machine;
  /// Rate of the fastest case; none if cases do different work, because these do not compete.
  std::optional<double> best_samples_per_second;
  std::vector<SummaryRow> cases;
};
void to_json(nlohmann::json& json, const Summary& summary);
Summary summarize_study(const Results& results);

/// Writes what is derived from the journals, and returns the summary: summary.json, cases.csv,
/// steps.csv, and the result.json of the case `only`, or of all cases.
Summary write_results(const ResultsDirectory& directory, const std::string& only = "");

/// Compares each row with its baseline and with the fastest case of the same work, and sets its MFU
/// and whether another case is the same program on one rank. Corrected ratios need rounds of both
/// cases in the same launch.
void relate_rows(std::vector<SummaryRow>& rows, const Study& study);

/// Returns the rounds of a case, or none if it was not measured.
std::vector<Round> rounds_of(const CaseResult& result);

std::string cases_csv(const Summary& summary);
std::string steps_csv(const Results& results);

/// One of the two results directories of a comparison.
struct ComparedSide {
  std::string directory;
  std::string program;  ///< the program that measured it

  TESSERA_FIELDS(directory, program);
};

struct ComparedCase {
  std::string label;
  std::optional<double> before_step_seconds, after_step_seconds;
  std::optional<double> ratio, detectable_ratio;
  std::string verdict;
  std::string reason;  ///< why a change of at least 3 % has no verdict

  TESSERA_FIELDS(label, before_step_seconds, after_step_seconds, ratio, detectable_ratio, verdict,
                 reason);
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
/// and the change is at least 3 %, else "indistinguishable". With too few rounds for any
/// significance, it is not compared, but has a ratio. Throws Error (usage) if the
/// directories have no case in common.
Comparison compare_results(const std::string& before, const std::string& after);
/// Returns the comparison as a table.
std::string comparison_text(const Comparison& comparison);

/// Compares a study's rounds with each other and returns how often such a comparison is wrong.
/// Throws Error (usage) if there are too few rounds.
std::string compare_with_itself(const std::string& directory);

}  // namespace tessera::bench
