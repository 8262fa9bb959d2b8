// SPDX-License-Identifier: Apache-2.0
#include "results/summary.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

constexpr std::array statuses{"ok",     "invalid", "oom",     "timeout",
                              "failed", "skipped", "running", "pending"};

Json get(const Json& result, const char* pointer) {
  const Json::json_pointer at(pointer);
  return result.contains(at) ? result.at(at) : Json();
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

/// Waiting and moving, as a share of the instrumented step.
Json communication_share(const Json& result) {
  const Json step = get(result, "/breakdown/step_seconds");
  if (step.is_null() || step.get<double>() <= 0) return nullptr;
  return (get(result, "/breakdown/communication/mean_rank_seconds").get<double>() +
          get(result, "/breakdown/idle/mean_rank_seconds").get<double>()) /
         step.get<double>();
}

Json row_of(const Json& result) {
  const Json losses = get(result, "/loss/epoch_losses");
  Json row{{"id", result.at("id")},
           {"label", result.at("label")},
           {"status", result.at("status")},
           {"reason", get(result, "/reason")},
           {"launch", get(result, "/launch")},
           {"strategy", get(result, "/factors/strategy")},
           {"mesh", get(result, "/factors/mesh")},
           {"ranks", get(result, "/factors/ranks")},
           {"global_batch", get(result, "/factors/global_batch")},
           {"batch_per_rank", get(result, "/case/batch_per_rank")},
           {"microbatches", get(result, "/factors/microbatches")},
           {"factors", result.at("factors")},
           {"step_seconds_median", nullptr},
           {"step_seconds_ci95_low", nullptr},
           {"step_seconds_ci95_high", nullptr},
           {"samples_per_second", nullptr},
           {"loss_verdict", get(result, "/loss/verdict")},
           {"final_loss", losses.is_array() && !losses.empty() ? losses.back() : Json()},
           {"communication_share", nullptr},
           {"flops_per_second", nullptr},
           {"mfu", nullptr},
           {"planned_bytes", get(result, "/memory/planned_bytes")},
           {"measured_bytes", get(result, "/memory/measured_bytes")},
           {"predicted_step_seconds", get(result, "/prediction/step_seconds")}};
  // What is not ok has no speed.
  if (result.at("status") != "ok") return row;
  row["step_seconds_median"] = get(result, "/step_seconds/median");
  row["step_seconds_ci95_low"] = get(result, "/step_seconds/ci95_low");
  row["step_seconds_ci95_high"] = get(result, "/step_seconds/ci95_high");
  row["samples_per_second"] = get(result, "/samples_per_second");
  row["communication_share"] = communication_share(result);
  row["flops_per_second"] = get(result, "/compute/flops_per_second");
  row["mfu"] = get(result, "/compute/mfu");
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
