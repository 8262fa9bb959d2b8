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

/// What parts of the instrumented step take together, as a share of it.
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

Json row_of(Json result) {
  // What is not ok has no speed.
  if (!is_measured(result))
    for (const char* part :
         {"step_seconds", "samples_per_second", "breakdown", "compute", "checkpoint"})
      result[part] = nullptr;
  Json row{{"factors", result.at("factors")}};
  for (const Column& column : columns)
    row[column.key] = column.from != nullptr ? get(result, column.from) : Json();
  row["batch_per_rank"] = row.at("global_batch").get<double>() / row.at("ranks").get<double>();
  row["other_factors"] = join(other_factors(row.at("factors")), " ");
  const Json losses = get(result, "/loss/epoch_losses");
  if (losses.is_array() && !losses.empty()) row["final_loss"] = losses.back();
  row["communication_share"] = share_of_step(row, {"communication_seconds", "idle_seconds"});
  row["product_share"] = share_of_step(row, {"product_seconds"});
  return row;
}

/// Out of memory by the plan is an answer, not an accident.
bool is_failure(const Json& result) {
  const std::string status = result.at("status");
  if (status == "oom") return get(result, "/memory/predicted_oom") != true;
  return status == "timeout" || status == "failed";
}

/// That of the worst failure: other errors before time-outs before memory.
ExitCode failure_code(const std::vector<Json>& cases) {
  for (const char* status : {"failed", "timeout", "oom"})
    for (const Json& result : cases)
      if (result.at("status") == status && is_failure(result))
        return static_cast<ExitCode>(result.at("exit_code").get<int>());
  return ExitCode::ok;
}

/// The cases that cannot be told from the best one: per sample they may be less than the smallest
/// effect slower.
std::vector<std::string> ties_of(const Results& results, std::size_t best) {
  std::vector<std::string> ties;
  if (best == results.cases.size()) return ties;
  const Json& first = results.cases[best];
  const double batch = get(first, "/factors/global_batch");
  for (const Json& result : results.cases) {
    if (&result == &first || !is_measured(result)) continue;
    const Statistics slower = paired_ratio(rounds_of(first), rounds_of(result));
    const double per_sample = batch / get(result, "/factors/global_batch").get<double>();
    if (slower.ci95 && slower.ci95->low * per_sample < 1 + smallest_effect)
      ties.push_back(result.at("id"));
  }
  return ties;
}

/// What the rounds of all cases say of the machine; null where there are too few.
Json machine_of(const Results& results) {
  std::map<Size, std::vector<Round>> by_ranks;
  std::vector<double> resolutions;
  Size fewest = std::numeric_limits<Size>::max();
  for (const Json& result : results.cases) {
    const std::vector<Round> rounds = rounds_of(result);
    if (rounds.empty()) continue;
    std::vector<Round>& group = by_ranks[get(result, "/factors/ranks")];
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

std::pair<const char*, ExitCode> verdict_of(const std::vector<Json>& cases, const Json& counts) {
  if (counts.at("invalid") > 0) return {"INVALID", ExitCode::wrong_result};
  if (std::any_of(cases.begin(), cases.end(), is_failure)) return {"FAIL", failure_code(cases)};
  if (counts.at("pending") > 0 || counts.at("running") > 0 ||
      (counts.at("ok") == 0 && counts.at("unverified") == 0))
    return {"PARTIAL", ExitCode::skipped};
  if (counts.at("unverified") > 0) return {"UNVERIFIED", ExitCode::ok};
  return {"PASS", ExitCode::ok};
}

}  // namespace

bool is_measured(const Json& result) {
  const Json& status = result.at("status");
  return status == "ok" || status == "unverified";
}

std::vector<Round> rounds_of(const Json& result) {
  if (!is_measured(result)) return {};
  return value_or(result, "rounds", std::vector<Round>());
}

Results read_results(const ResultsDirectory& directory) {
  Results results{directory.study(), {}};
  const double case_seconds = results.study.at("limits").at("case_seconds");
  for (const Json& listed : results.study.at("cases")) {
    const std::string id = listed.at("id");
    std::optional<Json> result = directory.result(id);
    const std::string status = directory.status(id, result, case_seconds);
    if (status == "pending") {
      result = listed;
      result->update({{"status", status}, {"reason", nullptr}});
    }
    if (is_measured(*result)) results.steps[id] = directory.steps(id);
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
  for (const Json& result : results.cases) {
    rows.push_back(row_of(result));
    Json& count = counts.at(result.at("status").get<std::string>());
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
