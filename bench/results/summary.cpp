// SPDX-License-Identifier: Apache-2.0
#include "results/summary.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera::bench {
namespace {

SummaryRow row_of(CaseResult result) {
  // A case that is not ok has no speed.
  if (!result.is_measured()) {
    result.step_seconds.reset();
    result.breakdown.reset();
    result.compute.reset();
    result.checkpoint.reset();
    result.samples_per_second.reset();
  }
  SummaryRow row;
  row.batch_per_rank = static_cast<double>(result.batch()) / static_cast<double>(result.ranks());
  if (result.loss && !result.loss->epoch_losses.empty())
    row.final_loss = result.loss->epoch_losses.back();
  row.result = std::move(result);
  return row;
}

/// A plan that needs too much memory is an answer, not a failure.
bool is_failure(const CaseResult& result) {
  if (result.status == "oom") return !result.is_predicted_oom();
  return result.status == "timeout" || result.status == "failed";
}

/// Returns the code of the worst failure: other errors, then time-outs, then memory.
ExitCode failure_code(const std::vector<CaseResult>& cases) {
  for (const char* status : {"failed", "timeout", "oom"})
    for (const CaseResult& result : cases)
      if (result.status == status && is_failure(result))
        return static_cast<ExitCode>(*result.exit_code);
  return ExitCode::ok;
}

/// Returns why times of so many measured cases are not reliable; empty if they are.
std::string timing_problem(const MachineDrift& machine, Size measured, Size with_few_rounds) {
  if (measured == 0) return "no case was measured";
  if (with_few_rounds > 0)
    return fmt::format("{} of {} have fewer than {} rounds", with_few_rounds,
                       counted(measured, "measured case"), enough_rounds);
  if (machine.drift.value_or(0) > most_drift)
    return fmt::format("the machine's speed varied by {:.0f} % between rounds",
                       100 * *machine.drift);
  if (!machine.resolution)
    return "the rounds of the median case scatter too much to tell any difference from none";
  if (*machine.resolution > most_resolution)
    return fmt::format(
        "the rounds of the median case cannot tell differences below {:.0f} % from "
        "none",
        100 * *machine.resolution);
  return "";
}

/// Too few rounds give no drift and no resolution.
MachineDrift machine_of(const std::vector<CaseResult>& cases) {
  std::map<std::pair<Size, double>, std::vector<Round>> groups;  // by ranks and threads
  std::vector<double> resolutions;
  Size fewest = std::numeric_limits<Size>::max(), few = 0;
  bool is_simulated = false;
  for (const CaseResult& result : cases) {
    is_simulated |= !result.simulated.empty();
    const std::vector<Round> rounds = rounds_of(result);
    if (rounds.empty()) continue;
    std::vector<Round>& group =
        groups[{result.ranks(), result.factors.value("distributed.threads", 1.0)}];
    group.insert(group.end(), rounds.begin(), rounds.end());
    resolutions.push_back(resolution_of(rounds));
    fewest = std::min(fewest, static_cast<Size>(rounds.size()));
    few += std::ssize(rounds) < enough_rounds;
  }
  MachineDrift machine;
  const Size measured = std::ssize(resolutions);
  if (measured > 0) {
    machine.rounds = fewest;
    if (fewest > 1)
      for (const auto& [key, group] : groups)
        machine.drift = std::max(machine.drift.value_or(0), drift_of(group) - 1);
    if (const double least = median(resolutions) - 1; few == 0 && std::isfinite(least))
      machine.resolution = least;
  }
  if (is_simulated) return machine;
  machine.problem = timing_problem(machine, measured, few);
  machine.timing_reliable = machine.problem.empty();
  return machine;
}

/// Returns the samples per second of the fastest case, if all cases do the same work.
std::optional<double> best_rate(const std::vector<SummaryRow>& rows) {
  std::vector<std::optional<double>> fastest;
  for (const SummaryRow& row : rows)
    if (row.standing == "fastest") fastest.push_back(row.result.samples_per_second);
  return fastest.size() == 1 ? fastest.front() : std::nullopt;
}

/// Names no case as the fastest if times are not reliable.
void withhold_standings(std::vector<SummaryRow>& rows) {
  for (SummaryRow& row : rows) {
    row.standing.clear();
    row.over_fastest.reset();
    row.over_fastest_on_ranks.reset();
  }
}

/// Returns the result of a case that is skipped or pending.
CaseResult unmeasured_result(const Study& study, const Case& listed, Size crashes) {
  CaseResult result;
  result.id = listed.id;
  result.study = study.name;
  result.label = listed.label;
  result.factors = listed.factors;
  result.crashes = crashes;
  if (listed.skip_reason) result.end(ExitCode::skipped, *listed.skip_reason);
  return result;
}

/// Sets what follows from the rounds and steps of a measured case.
void add_step_times(CaseResult& result, const std::vector<std::vector<double>>& blocks,
                    const MeasureRules& rules) {
  std::vector<double> steps;
  for (const std::vector<double>& block : blocks)
    steps.insert(steps.end(), block.begin(), block.end());
  const Statistics statistics = statistics_of(result.rounds, steps);
  result.step_seconds = {statistics, rules.warm_up};
  result.samples_per_second = static_cast<double>(result.batch()) / statistics.median;
  result.compute->set_step(statistics.median, result.ranks());
}

/// Writes the result of a case. A case that was begun again has none.
void write_result(const ResultsDirectory& directory, const CaseResult& result) {
  const std::string name = ResultsDirectory::of_case(result.id, "result.json");
  std::error_code unused;
  if (result.status == "pending")
    std::filesystem::remove(directory.path() / name, unused);
  else
    directory.write(name, result);
}

std::pair<const char*, ExitCode> verdict_of(const std::vector<CaseResult>& cases,
                                            const std::map<std::string, Size>& counts) {
  if (counts.at("invalid") > 0) return {"INVALID", ExitCode::wrong_result};
  if (std::any_of(cases.begin(), cases.end(), is_failure)) return {"FAIL", failure_code(cases)};
  if (counts.at("pending") > 0) return {"PARTIAL", ExitCode::skipped};
  if (counts.at("unverified") > 0) return {"UNVERIFIED", ExitCode::ok};
  return {"PASS", ExitCode::ok};
}

}  // namespace

std::optional<double> SummaryRow::share_of_step(
    std::initializer_list<Share Breakdown::*> parts) const {
  const std::optional<Breakdown>& breakdown = result.breakdown;
  if (!breakdown || breakdown->step_seconds <= 0) return std::nullopt;
  double seconds = 0;
  for (const auto part : parts) seconds += ((*breakdown).*part).mean_rank_seconds;
  return seconds / breakdown->step_seconds;
}

std::vector<Round> rounds_of(const CaseResult& result) {
  return result.is_measured() ? result.rounds : std::vector<Round>();
}

Results derive_results(StudyCases study, const Journals& journals) {
  Results results{std::move(study.study), {}};
  for (const Case& listed : study.cases) {
    CaseHistory history = history_of(journals, listed.id);
    CaseResult& result = results.cases.emplace_back(std::move(history.result));
    if (listed.skip_reason || result.status == "pending") {
      result = unmeasured_result(results.study, listed, result.crashes);
    } else if (result.is_measured()) {
      if (result.simulated.empty()) add_step_times(result, history.steps, results.study.measure);
      results.steps[listed.id] = std::move(history.steps);
    }
  }
  return results;
}

Results read_results(const ResultsDirectory& directory) {
  return derive_results(directory.study(), read_journals(directory.path()));
}

Summary summarize_study(const Results& results) {
  Summary summary;
  summary.study = results.study.name;
  for (const std::string_view status : statuses) summary.counts[std::string(status)] = 0;
  for (const CaseResult& result : results.cases) {
    ++summary.counts.at(result.status);
    summary.cases.push_back(row_of(result));
  }
  relate_rows(summary.cases, results.study);
  std::tie(summary.result, summary.exit_code) = verdict_of(results.cases, summary.counts);
  summary.machine = machine_of(results.cases);
  summary.best_samples_per_second = best_rate(summary.cases);
  if (!summary.machine.timing_reliable.value_or(true)) withhold_standings(summary.cases);
  return summary;
}

Summary write_results(const ResultsDirectory& directory, const std::string& only) {
  const auto is_wanted = [&](const CaseResult& result) {
    return only.empty() || result.id == only;
  };
  while (true) {
    const Journals journals = read_journals(directory.path());
    const Results results = derive_results(directory.study(), journals);
    for (const CaseResult& result : results.cases)
      if (is_wanted(result)) write_result(directory, result);
    Summary summary = summarize_study(results);
    directory.write("summary.json", summary);
    write_text(directory.path() / "cases.csv", cases_csv(summary));
    write_text(directory.path() / "steps.csv", steps_csv(results));
    // Another launch may have ended a round meanwhile, and written its results before these.
    if (!only.empty() || journal_bytes(directory.path()) == journals.bytes) return summary;
  }
}

}  // namespace tessera::bench
