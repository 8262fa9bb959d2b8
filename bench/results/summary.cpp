// SPDX-License-Identifier: Apache-2.0
#include "results/summary.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

constexpr std::array statuses{"ok",     "invalid", "oom",     "timeout",
                              "failed", "skipped", "running", "pending"};

Json get(const Json& result, const std::string& pointer) {
  return result.value(Json::json_pointer(pointer), Json());
}

Json pending_case(const Json& listed) {
  Json result{
      {"id", listed.at("id")}, {"label", listed.at("label")},     {"status", "pending"},
      {"reason", nullptr},     {"factors", listed.at("factors")}, {"case", listed.at("factors")}};
  const Json& factors = listed.at("factors");
  result["case"]["batch_per_rank"] =
      factors.at("global_batch").get<double>() / factors.at("ranks").get<double>();
  return result;
}

/// What phases of the mean rank take together, as a share of the instrumented step.
Json share_of_step(const Json& result, std::initializer_list<const char*> phases) {
  const Json step = get(result, "/breakdown/step_seconds");
  if (step.is_null() || step.get<double>() <= 0) return nullptr;
  double seconds = 0;
  for (const std::string phase : phases) {
    const Json part = get(result, "/breakdown/" + phase + "/mean_rank_seconds");
    if (part.is_null()) return nullptr;
    seconds += part.get<double>();
  }
  return seconds / step.get<double>();
}

/// A key of a row, and where its value stands in the result.
struct Source {
  const char* key;
  const char* from;
};
constexpr Source sources[] = {
    {"id", "/id"},
    {"label", "/label"},
    {"status", "/status"},
    {"reason", "/reason"},
    {"launch", "/launch"},
    {"strategy", "/factors/strategy"},
    {"mesh", "/factors/mesh"},
    {"ranks", "/factors/ranks"},
    {"global_batch", "/factors/global_batch"},
    {"batch_per_rank", "/case/batch_per_rank"},
    {"microbatches", "/factors/microbatches"},
    {"factors", "/factors"},
    {"loss_verdict", "/loss/verdict"},
    {"planned_bytes", "/memory/planned_bytes"},
    {"measured_bytes", "/memory/measured_bytes"},
    {"predicted_step_seconds", "/prediction/step_seconds"},
};
constexpr Source sources_of_speed[] = {
    {"step_seconds_median", "/step_seconds/median"},
    {"step_seconds_ci95_low", "/step_seconds/ci95_low"},
    {"step_seconds_ci95_high", "/step_seconds/ci95_high"},
    {"samples_per_second", "/samples_per_second"},
    {"flops_per_second", "/compute/flops_per_second"},
    {"flops_per_second_per_rank", "/compute/flops_per_second_per_rank"},
    {"mfu", "/compute/mfu"},
};

Json row_of(const Json& result) {
  Json row;
  for (const Source& source : sources) row[source.key] = get(result, source.from);
  const Json losses = get(result, "/loss/epoch_losses");
  row["final_loss"] = losses.is_array() && !losses.empty() ? losses.back() : Json();
  // What is not ok has no speed.
  const bool ok = result.at("status") == "ok";
  for (const Source& source : sources_of_speed)
    row[source.key] = ok ? get(result, source.from) : Json();
  row["communication_share"] = ok ? share_of_step(result, {"communication", "idle"}) : Json();
  row["product_share"] = ok ? share_of_step(result, {"products"}) : Json();
  return row;
}

/// Out of memory by the plan is an answer, not an accident.
bool is_failure(const Json& result) {
  const std::string status = result.at("status");
  if (status == "oom")
    return !get(result, "/memory/predicted_oom").is_boolean() ||
           !get(result, "/memory/predicted_oom").get<bool>();
  return status == "timeout" || status == "failed";
}

std::string verdict_of(const std::vector<Json>& cases, const Json& counts) {
  if (counts.at("invalid") > 0) return "INVALID";
  if (std::any_of(cases.begin(), cases.end(), is_failure)) return "FAIL";
  if (counts.at("pending") > 0 || counts.at("running") > 0 || counts.at("ok") == 0)
    return "PARTIAL";
  return "PASS";
}

/// That of the worst failure: other errors before time-outs before memory.
ExitCode failure_code(const std::vector<Json>& cases) {
  ExitCode code = ExitCode::ok;
  const auto worst = [&](const char* status) {
    for (const Json& result : cases) {
      if (result.at("status") != status || !is_failure(result)) continue;
      code = static_cast<ExitCode>(result.value("exit_code", 1));
      return;
    }
  };
  for (const char* status : {"oom", "timeout", "failed"}) worst(status);
  return code;
}

}  // namespace

Results read_results(const ResultsDirectory& directory) {
  Results results{directory.study(), {}};
  const double case_seconds = results.study.at("limits").at("case_seconds");
  for (const Json& listed : results.study.at("cases")) {
    const std::string id = listed.at("id");
    std::optional<Json> result = directory.result(id);
    const std::string status = directory.status(id, result, case_seconds);
    if (status == "pending") result = pending_case(listed);
    if (status == "ok") results.steps[id] = directory.steps(id);
    results.cases.push_back(std::move(*result));
  }
  return results;
}

Json summarize_study(const Results& results) {
  std::vector<Json> rows;
  Json counts;
  for (const char* status : statuses) counts[status] = 0;
  Json best;
  double best_rate = 0;
  for (const Json& result : results.cases) {
    rows.push_back(row_of(result));
    const std::string status = result.at("status");
    counts[status] = counts.at(status).get<Size>() + 1;
    const Json& rate = rows.back().at("samples_per_second");
    if (rate.is_null() || rate.get<double>() <= best_rate) continue;
    best = result.at("id");
    best_rate = rate;
  }
  add_scaling(rows, results.study);
  const std::string verdict = verdict_of(results.cases, counts);
  return {{"schema_version", 1},
          {"study", results.study.at("name")},
          {"result", verdict},
          {"exit_code", static_cast<int>(verdict == "PASS"      ? ExitCode::ok
                                         : verdict == "INVALID" ? ExitCode::wrong_result
                                         : verdict == "PARTIAL" ? ExitCode::skipped
                                                                : failure_code(results.cases))},
          {"counts", counts},
          {"best", best},
          {"cases", rows}};
}

Json write_summary(const ResultsDirectory& directory) {
  const Results results = read_results(directory);
  const Json summary = summarize_study(results);
  directory.write_document("summary.json", summary);
  directory.write_text("cases.csv", cases_csv(results, summary));
  directory.write_text("steps.csv", steps_csv(results));
  return summary;
}

ExitCode exit_code_of(const Json& summary) {
  return static_cast<ExitCode>(summary.at("exit_code").get<int>());
}

Size count_of(const Json& summary, const std::string& status) {
  return summary.at("counts").value(status, Size{0});
}

}  // namespace tessera::bench
