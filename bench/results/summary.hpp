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
  std::optional<double> final_loss, gemm_peak_flops_per_second, mfu;
  std::string scaling;
  /// A row with one has no baseline and no standing: differences from that case are noise.
  std::string same_program_as;
  std::string baseline;
  std::optional<Size> baseline_ranks;
  std::optional<double> baseline_step_seconds;
  std::optional<double> speedup, efficiency;
  /// Statistics of ratios of rounds, each corrected for the speed of the machine.
  std::optional<Statistics> corrected_speedup, over_fastest, over_fastest_on_ranks;
  std::string standing;

  static void fields(auto& f, auto& v) {
    f("batch_per_rank", v.batch_per_rank);
    f("final_loss", v.final_loss, "of the last epoch");
    f("gemm_peak_flops_per_second", v.gemm_peak_flops_per_second,
      "best beside any case with as many ranks and threads and this type");
    f("mfu", v.mfu, "flops_per_second over that peak");
    f("scaling", v.scaling, "of the study");
    f("same_program_as", v.same_program_as, "the case that stands for this one, on one rank");
    f("baseline", v.baseline, "id of the case");
    f("baseline_ranks", v.baseline_ranks);
    f("baseline_step_seconds", v.baseline_step_seconds);
    f("speedup", v.speedup, "samples_per_second over the baseline's");
    f("efficiency", v.efficiency, "speedup · p0/p with p ranks, times threads where these vary");
    f("standing", v.standing, "fastest or tied among cases of the same work");
  }

  /// Returns a time of the mean rank as a fraction of the instrumented step.
  std::optional<double> share_of_step(std::initializer_list<Share Breakdown::*> parts) const;
};

/// The state of the machine during a study.
struct MachineDrift {
  std::optional<double> drift, resolution;
  std::optional<Size> rounds;
  std::optional<bool> timing_reliable;
  std::string problem;

  static void fields(auto& f, auto& v) {
    f("drift", v.drift, "of the machine's speed");
    f("resolution", v.resolution, "of the median case");
    f("rounds", v.rounds, "of the case with the fewest");
    f("timing_reliable", v.timing_reliable,
      "false: no case is called the fastest; null: simulated");
    f("problem", v.problem, "why times are not reliable");
  }
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
  std::string program;

  static void fields(auto& f, auto& v) {
    f("directory", v.directory);
    f("program", v.program, "the program that measured it");
  }
};

struct ComparedCase {
  std::string label;
  std::optional<double> before_step_seconds, after_step_seconds;
  std::optional<double> ratio, detectable_ratio;
  std::string verdict, reason;

  static void fields(auto& f, auto& v) {
    f("label", v.label, "factors of the case");
    f("before_step_seconds", v.before_step_seconds);
    f("after_step_seconds", v.after_step_seconds);
    f("ratio", v.ratio, "after over before, corrected for the machine");
    f("detectable_ratio", v.detectable_ratio, "the smallest that rounds with this scatter show");
    f("verdict", v.verdict, "better, worse, indistinguishable, or why not compared");
    f("reason", v.reason, "why a change of 3 % or more has no verdict");
  }
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
    f("schema_version", written(1));
    f("before", v.before, "results directory");
    f("after", v.after, "results directory");
    f("machine_ratio", v.machine_ratio, "how much longer the fixed kernels took after");
    f("compared", v.compared, "cases with enough rounds");
    f("regressed", v.regressed, "a case is worse, or ends in an error now");
    f("counts", v.counts, "of cases by verdict");
    f("cases", v.cases, "in the order of the studies");
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

}  // namespace tessera::bench
