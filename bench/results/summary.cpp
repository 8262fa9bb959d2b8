// SPDX-License-Identifier: Apache-2.0
#include "results/summary.hpp"

#include <algorithm>
#include <limits>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/io/whole_file.hpp>

#include "results/columns.hpp"
#include "results/documents.hpp"
#include "results/stored_checks.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

Json get(const Json& result, const char* pointer) {
  return result.value(Json::json_pointer(pointer), Json());
}

/// Returns the share of some parts in the instrumented step.
Json share_of_step(const Json& row, std::initializer_list<const char*> parts) {
  const Json& step = row.at("instrumented_step_seconds");
  if (step.is_null() || step <= 0) return nullptr;
  double seconds = 0;
  for (const char* part : parts) {
    if (row.at(part).is_null()) return nullptr;
    seconds += row.at(part).get<double>();
  }
  return seconds / step.get<double>();
}

Json row_of(CaseResult result) {
  // A case that is not ok has no speed.
  if (!result.is_measured()) {
    for (Json* part :
         {&result.step_seconds, &result.breakdown, &result.compute, &result.checkpoint})
      *part = nullptr;
    result.samples_per_second.reset();
  }
  const Json document = result;
  Json row{{"factors", result.factors}};
  for (const Column& column : columns)
    row[column.key] = column.from != nullptr ? get(document, column.from) : Json();
  row["batch_per_rank"] = row.at("global_batch").get<double>() / row.at("ranks").get<double>();
  row["other_factors"] = join(other_factors(row.at("factors")), " ");
  const Json losses = get(document, "/loss/epoch_losses");
  if (losses.is_array() && !losses.empty()) row["final_loss"] = losses.back();
  row["communication_share"] = share_of_step(row, {"communication_seconds", "idle_seconds"});
  row["product_share"] = share_of_step(row, {"product_seconds"});
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

/// Returns the cases that are indistinguishable from the best one: the interval of their time per
/// sample reaches below 1 + smallest_effect.
std::vector<std::string> ties_of(const Results& results, std::size_t best) {
  std::vector<std::string> ties;
  if (best == results.cases.size()) return ties;
  const CaseResult& first = results.cases[best];
  const double batch = first.factors.at("global_batch");
  for (const CaseResult& result : results.cases) {
    if (&result == &first || !result.is_measured()) continue;
    const Statistics slower = paired_ratio(rounds_of(first), rounds_of(result));
    const double per_sample = batch / result.factors.at("global_batch").get<double>();
    if (slower.ci95 && slower.ci95->low * per_sample < 1 + smallest_effect)
      ties.push_back(result.id);
  }
  return ties;
}

/// Returns drift and resolution of the machine from the rounds of all cases; null for too few
/// rounds.
Json machine_of(const Results& results) {
  std::map<Size, std::vector<Round>> by_ranks;
  std::vector<double> resolutions;
  Size fewest = std::numeric_limits<Size>::max();
  for (const CaseResult& result : results.cases) {
    const std::vector<Round> rounds = rounds_of(result);
    if (rounds.empty()) continue;
    std::vector<Round>& group = by_ranks[result.factors.at("ranks")];
    group.insert(group.end(), rounds.begin(), rounds.end());
    resolutions.push_back(resolution_of(rounds));
    fewest = std::min(fewest, static_cast<Size>(rounds.size()));
  }
  Json machine{{"drift", nullptr}, {"resolution", nullptr}, {"rounds", nullptr}};
  if (resolutions.empty()) return machine;
  machine["rounds"] = fewest;
  if (fewest > 1) machine["drift"] = drift_of(by_ranks) - 1;
  if (fewest >= enough_rounds) machine["resolution"] = finite(median(resolutions) - 1);
  return machine;
}

std::pair<const char*, ExitCode> verdict_of(const std::vector<CaseResult>& cases,
                                            const Json& counts) {
  if (counts.at("invalid") > 0) return {"INVALID", ExitCode::wrong_result};
  if (std::any_of(cases.begin(), cases.end(), is_failure)) return {"FAIL", failure_code(cases)};
  if (counts.at("pending") > 0 || counts.at("running") > 0 ||
      (counts.at("ok") == 0 && counts.at("unverified") == 0))
    return {"PARTIAL", ExitCode::skipped};
  if (counts.at("unverified") > 0) return {"UNVERIFIED", ExitCode::ok};
  return {"PASS", ExitCode::ok};
}

}  // namespace

std::vector<Round> rounds_of(const CaseResult& result) {
  return result.is_measured() ? result.rounds : std::vector<Round>();
}

Results read_results(const ResultsDirectory& directory) {
  Results results{directory.study(), {}};
  const double case_seconds = results.study.at("limits").at("case_seconds");
  for (const Json& listed : results.study.at("cases")) {
    const std::string id = listed.at("id");
    std::optional<CaseResult> result = directory.result(id);
    if (directory.status(id, result, case_seconds) == "pending") {
      result.emplace();
      result->id = id;
      result->label = listed.at("label");
      result->factors = listed.at("factors");
    }
    if (result->is_measured()) results.steps[id] = directory.steps(id);
    results.cases.push_back(std::move(*result));
  }
  return results;
}

Json summarize_study(const Results& results) {
  std::vector<Json> rows;
  Json counts;
  for (const char* status : statuses) counts[status] = 0;
  std::size_t best = results.cases.size();
  double best_rate = 0;
  for (const CaseResult& result : results.cases) {
    rows.push_back(row_of(result));
    Json& count = counts.at(result.status);
    count = count.get<Size>() + 1;
    const Json& rate = rows.back().at("samples_per_second");
    if (rate.is_null() || rate <= best_rate) continue;
    best = rows.size() - 1;
    best_rate = rate;
  }
  add_scaling(rows, results);
  const auto [verdict, code] = verdict_of(results.cases, counts);
  return {{"schema_version", 1},
          {"study", results.study.at("name")},
          {"result", verdict},
          {"exit_code", static_cast<int>(code)},
          {"counts", counts},
          {"best", best < rows.size() ? rows[best].at("id") : Json()},
          {"ties", ties_of(results, best)},
          {"machine", machine_of(results)},
          {"cases", rows}};
}

Json write_summary(const ResultsDirectory& directory) {
  const Results results = read_results(directory);
  const Json summary = summarize_study(results);
  directory.write("summary.json", summary);
  write_text(directory.path() / "cases.csv", cases_csv(summary));
  write_text(directory.path() / "steps.csv", steps_csv(results));
  return summary;
}

}  // namespace tessera::bench
