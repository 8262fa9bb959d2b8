// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include <fmt/format.h>

#include "results/summary.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// RFC 4180; what is unknown is empty.
std::string field(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) return fmt::format("{:.9g}", value.get<double>());
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2)
    text.insert(at, "\"");
  return '"' + text + '"';
}

Json other_factors(const Json& factors) {
  std::string text;
  for (const auto& [key, value] : factors.items())
    if (key.find('.') != std::string::npos)
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, factor_text(value));
  return text;
}

/// Name of a column, and where its value stands: in the summary's row or, with a slash, in the
/// result.
struct Column {
  const char* name;
  const char* from;
};

constexpr Column columns[] = {
    {"id", "id"},
    {"label", "label"},
    {"status", "status"},
    {"reason", "reason"},
    {"strategy", "strategy"},
    {"mesh", "mesh"},
    {"ranks", "ranks"},
    {"global_batch", "global_batch"},
    {"batch_per_rank", "batch_per_rank"},
    {"microbatches", "microbatches"},
    {"other_factors", nullptr},
    {"step_median_s", "step_seconds_median"},
    {"step_mad_s", "/step_seconds/mad"},
    {"step_min_s", "/step_seconds/min"},
    {"step_p95_s", "/step_seconds/p95"},
    {"step_max_s", "/step_seconds/max"},
    {"step_ci95_low_s", "step_seconds_ci95_low"},
    {"step_ci95_high_s", "step_seconds_ci95_high"},
    {"step_n", "/step_seconds/n"},
    {"step_outliers", "/step_seconds/outliers"},
    {"samples_per_s", "samples_per_second"},
    {"baseline", "baseline"},
    {"baseline_ranks", "baseline_ranks"},
    {"baseline_step_s", "baseline_step_seconds"},
    {"scaling", "scaling"},
    {"speedup", "speedup"},
    {"speedup_low", "speedup_low"},
    {"speedup_high", "speedup_high"},
    {"efficiency", "efficiency"},
    {"efficiency_low", "efficiency_low"},
    {"efficiency_high", "efficiency_high"},
    {"loss_verdict", "loss_verdict"},
    {"loss_largest_relative_difference", "/loss/largest_relative_difference"},
    {"final_loss", "final_loss"},
    {"compute_mean_s", "/breakdown/compute/mean_rank_seconds"},
    {"communication_mean_s", "/breakdown/communication/mean_rank_seconds"},
    {"idle_mean_s", "/breakdown/idle/mean_rank_seconds"},
    {"optimizer_mean_s", "/breakdown/optimizer/mean_rank_seconds"},
    {"other_mean_s", "/breakdown/other/mean_rank_seconds"},
    {"product_share", "product_share"},
    {"flops_per_s", "flops_per_second"},
    {"flops_per_s_per_rank", "flops_per_second_per_rank"},
    {"mfu", "mfu"},
    {"planned_bytes", "planned_bytes"},
    {"measured_bytes", "measured_bytes"},
    {"predicted_step_s", "predicted_step_seconds"},
    {"attempt", "/attempt"},
    {"launch", "launch"},
};

Json value_of(const Column& column, const Json& row, const Json& result) {
  if (column.from == nullptr) return other_factors(row.at("factors"));
  if (column.from[0] != '/') return row.at(column.from);
  return result.value(Json::json_pointer(column.from), Json());
}

}  // namespace

std::string cases_csv(const Results& results, const Json& summary) {
  std::string text;
  for (const Column& column : columns) text += (text.empty() ? "" : ",") + std::string(column.name);
  text += "\n";
  for (std::size_t i = 0; i < results.cases.size(); ++i) {
    std::string line;
    for (const Column& column : columns) {
      if (&column != columns) line += ",";
      line += field(value_of(column, summary.at("cases")[i], results.cases[i]));
    }
    text += line + "\n";
  }
  return text;
}

std::string steps_csv(const Results& results) {
  std::string text = "id,attempt,step,seconds\n";
  for (const Json& result : results.cases) {
    const auto found = results.steps.find(result.at("id"));
    if (found == results.steps.end()) continue;
    for (std::size_t step = 0; step < found->second.size(); ++step)
      fmt::format_to(std::back_inserter(text), "{},{},{},{:.9g}\n", found->first,
                     result.at("attempt").get<Size>(), step, found->second[step]);
  }
  return text;
}

}  // namespace tessera::bench
