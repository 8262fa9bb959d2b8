// SPDX-License-Identifier: Apache-2.0
#include "results/summary.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

using Columns = std::vector<std::pair<std::string, Json>>;

/// Returns a row's values with their names.
Columns columns_of(const SummaryRow& v) {
  Columns columns;
  const auto f = [&](const char* name, const auto& value) {
    columns.emplace_back(name, document_of(value));
  };
  const CaseResult& r = v.result;
  const auto factor = [&](const char* key) { return r.factors.value(key, nlohmann::json()); };
  const auto seconds = [&](Share Breakdown::*part) {
    return r.breakdown ? std::optional(((*r.breakdown).*part).mean_rank_seconds) : std::nullopt;
  };
  const auto of_nodes = [&] {
    return r.facts.is_object() ? r.facts.value("/nodes/count"_json_pointer, nlohmann::json())
                               : nlohmann::json();
  };
  std::optional<double> launches;
  if (r.breakdown && r.breakdown->launches) launches = r.breakdown->launches->mean_rank_seconds;
  const LaunchCounts counts = count_launches(r.rounds);
  const auto if_measured = [&](Size number) {
    return r.step_seconds ? std::optional(number) : std::nullopt;
  };
  std::optional<double> write_rate;
  if (r.checkpoint) write_rate = r.checkpoint->write_bytes_per_second();
  f("id", r.id);
  f("label", r.label);
  f("status", r.status);
  f("reason", r.reason);
  f("strategy", factor("strategy"));
  f("mesh", factor("mesh"));
  f("ranks", factor("ranks"));
  f("nodes", of_nodes());
  f("global_batch", factor("global_batch"));
  f("batch_per_rank", v.batch_per_rank);
  f("microbatches", factor("microbatches"));
  f("step_seconds_median", member_of(r.step_seconds, &StepTimes::median));
  f("step_seconds_mad", member_of(r.step_seconds, &StepTimes::mad));
  f("step_seconds_min", member_of(r.step_seconds, &StepTimes::min));
  f("step_seconds_p95", member_of(r.step_seconds, &StepTimes::p95));
  f("step_seconds_max", member_of(r.step_seconds, &StepTimes::max));
  f("step_seconds_ci95_low", member_of(r.step_seconds, &StepTimes::ci95_low));
  f("step_seconds_ci95_high", member_of(r.step_seconds, &StepTimes::ci95_high));
  f("step_seconds_ci95_problem", member_of(r.step_seconds, &StepTimes::ci95_problem));
  f("step_seconds_n", member_of(r.step_seconds, &StepTimes::n));
  f("step_seconds_outliers", member_of(r.step_seconds, &StepTimes::outliers));
  f("rounds", if_measured(std::ssize(r.rounds)));
  f("launches", if_measured(counts.whole));
  f("partial_launches", if_measured(counts.partial));
  f("samples_per_second", r.samples_per_second);
  f("same_program_as", v.same_program_as);
  f("baseline", v.baseline);
  f("baseline_ranks", v.baseline_ranks);
  f("baseline_step_seconds", v.baseline_step_seconds);
  f("scaling", v.scaling);
  f("speedup", v.speedup);
  f("efficiency", v.efficiency);
  f("corrected_speedup", member_of(v.corrected_speedup, &Statistics::median));
  f("corrected_speedup_low", member_of(v.corrected_speedup, &Statistics::ci95_low));
  f("corrected_speedup_high", member_of(v.corrected_speedup, &Statistics::ci95_high));
  f("standing", v.standing);
  f("over_fastest", member_of(v.over_fastest, &Statistics::median));
  f("over_fastest_low", member_of(v.over_fastest, &Statistics::ci95_low));
  f("over_fastest_high", member_of(v.over_fastest, &Statistics::ci95_high));
  f("loss_verdict", member_of(r.loss, &LossResult::verdict));
  f("loss_largest_relative_difference",
    member_of(r.loss, &LossResult::largest_relative_difference));
  f("final_loss", v.final_loss);
  f("instrumented_step_seconds", member_of(r.breakdown, &Breakdown::step_seconds));
  f("compute_seconds", seconds(&Breakdown::compute));
  f("communication_seconds", seconds(&Breakdown::communication));
  f("idle_seconds", seconds(&Breakdown::idle));
  f("optimizer_seconds", seconds(&Breakdown::optimizer));
  f("other_seconds", seconds(&Breakdown::other));
  f("product_seconds", seconds(&Breakdown::products));
  f("launch_seconds", launches);
  f("communication_share", v.share_of_step({&Breakdown::communication, &Breakdown::idle}));
  f("product_share", v.share_of_step({&Breakdown::products}));
  f("flops_per_second", member_of(r.compute, &ComputeResult::flops_per_second));
  f("flops_per_second_per_rank", member_of(r.compute, &ComputeResult::flops_per_second_per_rank));
  f("gemm_peak_flops_per_second", v.gemm_peak_flops_per_second);
  f("mfu", v.mfu);
  f("planned_bytes", member_of(r.memory, &MemoryResult::planned_bytes));
  f("measured_bytes", member_of(r.memory, &MemoryResult::measured_bytes));
  f("predicted_step_seconds", member_of(r.prediction, &Prediction::step_seconds));
  f("checkpoint_bytes", member_of(r.checkpoint, &CheckpointTimes::bytes));
  f("checkpoint_write_seconds", member_of(r.checkpoint, &CheckpointTimes::write_seconds));
  f("checkpoint_write_bytes_per_second", write_rate);
  f("checkpoint_exposed_seconds", member_of(r.checkpoint, &CheckpointTimes::exposed_seconds));
  f("checkpoint_read_seconds", member_of(r.checkpoint, &CheckpointTimes::read_seconds));
  f("crashes", r.crashes);
  f("launch", r.launch);
  f("simulated", r.simulated);
  return columns;
}

/// Returns the configuration keys that vary, in alphabetical order.
std::set<std::string> swept_keys(const Summary& summary) {
  std::set<std::string> keys;
  for (const SummaryRow& row : summary.cases)
    for (const auto& [key, value] : row.result.factors.items())
      if (key.find('.') != std::string::npos) keys.insert(key);
  return keys;
}

/// Returns a row's columns of cases.csv, with one for each swept key after the other factors.
Columns csv_columns(const SummaryRow& row, const std::set<std::string>& swept) {
  Columns columns;
  for (auto& column : columns_of(row)) {
    columns.push_back(std::move(column));
    if (columns.back().first != "microbatches") continue;
    for (const std::string& key : swept)
      columns.emplace_back(key, row.result.factors.value(key, Json()));
  }
  return columns;
}

/// Returns a value as RFC 4180 writes it; unknown ones are empty.
std::string csv_cell(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) return fmt::format("{:.9g}", value.get<double>());
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2)
    text.insert(at, 1, '"');
  return fmt::format("\"{}\"", text);
}

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
  std::map<Size, std::vector<Round>> by_ranks;
  std::vector<double> resolutions;
  Size fewest = std::numeric_limits<Size>::max(), few = 0;
  bool is_simulated = false;
  for (const CaseResult& result : cases) {
    is_simulated |= !result.simulated.empty();
    const std::vector<Round> rounds = rounds_of(result);
    if (rounds.empty()) continue;
    std::vector<Round>& group = by_ranks[result.ranks()];
    group.insert(group.end(), rounds.begin(), rounds.end());
    resolutions.push_back(resolution_of(rounds));
    fewest = std::min(fewest, static_cast<Size>(rounds.size()));
    few += std::ssize(rounds) < enough_rounds;
  }
  MachineDrift machine;
  const Size measured = std::ssize(resolutions);
  if (measured > 0) {
    machine.rounds = fewest;
    if (fewest > 1) machine.drift = drift_of(by_ranks) - 1;
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
  if (counts.at("pending") > 0 || (counts.at("ok") == 0 && counts.at("unverified") == 0))
    return {"PARTIAL", ExitCode::skipped};
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

void to_json(Json& json, const Summary& summary) {
  Json rows = Json::array();
  for (const SummaryRow& row : summary.cases) {
    Json& one = rows.emplace_back(Json{{"factors", row.result.factors}});
    for (const auto& [name, value] : columns_of(row)) one[name] = value;
  }
  json = {{"schema_version", 1},
          {"study", summary.study},
          {"result", summary.result},
          {"exit_code", static_cast<int>(summary.exit_code)},
          {"counts", summary.counts},
          {"machine", summary.machine},
          {"cases", rows}};
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

std::string cases_csv(const Summary& summary) {
  const std::set<std::string> swept = swept_keys(summary);
  std::vector<std::string> cells;
  for (const auto& [name, value] : csv_columns({}, swept)) cells.push_back(name);
  std::string text = join(cells, ",") + "\n";
  for (const SummaryRow& row : summary.cases) {
    cells.clear();
    for (const auto& [name, value] : csv_columns(row, swept)) cells.push_back(csv_cell(value));
    text += join(cells, ",") + "\n";
  }
  return text;
}

std::string steps_csv(const Results& results) {
  std::string text = "id,round,step,seconds\n";
  for (const CaseResult& result : results.cases) {
    const auto found = results.steps.find(result.id);
    if (found == results.steps.end()) continue;
    for (std::size_t round = 0; round < found->second.size(); ++round)
      for (std::size_t step = 0; step < found->second[round].size(); ++step)
        text +=
            fmt::format("{},{},{},{:.9g}\n", found->first, round, step, found->second[round][step]);
  }
  return text;
}

}  // namespace tessera::bench
