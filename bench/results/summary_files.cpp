// SPDX-License-Identifier: Apache-2.0
// The files of a summary: summary.json, cases.csv, steps.csv.
#include <set>

#include <fmt/format.h>

#include <tessera/base/text.hpp>

#include "results/summary.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

using Columns = std::vector<std::pair<std::string, Json>>;

/// A column of summary.json and cases.csv, and its place in document_of_row().
struct SummaryColumn {
  const char* name;
  const char* place;
};
constexpr SummaryColumn summary_columns[] = {
    {"id", "/id"},
    {"label", "/label"},
    {"status", "/status"},
    {"reason", "/reason"},
    {"strategy", "/factors/strategy"},
    {"mesh", "/factors/mesh"},
    {"ranks", "/factors/ranks"},
    {"nodes", "/case/nodes/count"},
    {"global_batch", "/factors/global_batch"},
    {"batch_per_rank", "/row/batch_per_rank"},
    {"microbatches", "/factors/microbatches"},
    {"step_seconds_median", "/step_seconds/median"},
    {"step_seconds_mad", "/step_seconds/mad"},
    {"step_seconds_min", "/step_seconds/min"},
    {"step_seconds_p95", "/step_seconds/p95"},
    {"step_seconds_max", "/step_seconds/max"},
    {"step_seconds_ci95_low", "/step_seconds/ci95_low"},
    {"step_seconds_ci95_high", "/step_seconds/ci95_high"},
    {"step_seconds_ci95_problem", "/step_seconds/ci95_problem"},
    {"step_seconds_n", "/step_seconds/n"},
    {"step_seconds_outliers", "/step_seconds/outliers"},
    {"rounds", "/derived/rounds"},
    {"launches", "/derived/launches"},
    {"partial_launches", "/derived/partial_launches"},
    {"samples_per_second", "/samples_per_second"},
    {"same_program_as", "/row/same_program_as"},
    {"baseline", "/row/baseline"},
    {"baseline_ranks", "/row/baseline_ranks"},
    {"baseline_step_seconds", "/row/baseline_step_seconds"},
    {"scaling", "/row/scaling"},
    {"speedup", "/row/speedup"},
    {"efficiency", "/row/efficiency"},
    {"corrected_speedup", "/derived/corrected_speedup/0"},
    {"corrected_speedup_low", "/derived/corrected_speedup/1"},
    {"corrected_speedup_high", "/derived/corrected_speedup/2"},
    {"standing", "/row/standing"},
    {"over_fastest", "/derived/over_fastest/0"},
    {"over_fastest_low", "/derived/over_fastest/1"},
    {"over_fastest_high", "/derived/over_fastest/2"},
    {"loss_verdict", "/loss/verdict"},
    {"loss_largest_relative_difference", "/loss/largest_relative_difference"},
    {"final_loss", "/row/final_loss"},
    {"instrumented_step_seconds", "/breakdown/step_seconds"},
    {"compute_seconds", "/breakdown/compute/mean_rank_seconds"},
    {"communication_seconds", "/breakdown/communication/mean_rank_seconds"},
    {"idle_seconds", "/breakdown/idle/mean_rank_seconds"},
    {"optimizer_seconds", "/breakdown/optimizer/mean_rank_seconds"},
    {"other_seconds", "/breakdown/other/mean_rank_seconds"},
    {"product_seconds", "/breakdown/products/mean_rank_seconds"},
    {"launch_seconds", "/breakdown/launches/mean_rank_seconds"},
    {"communication_share", "/derived/communication_share"},
    {"product_share", "/derived/product_share"},
    {"flops_per_second", "/compute/flops_per_second"},
    {"flops_per_second_per_rank", "/compute/flops_per_second_per_rank"},
    {"gemm_peak_flops_per_second", "/row/gemm_peak_flops_per_second"},
    {"mfu", "/row/mfu"},
    {"planned_bytes", "/memory/planned_bytes"},
    {"measured_bytes", "/memory/measured_bytes"},
    {"predicted_step_seconds", "/prediction/step_seconds"},
    {"checkpoint_bytes", "/checkpoint/bytes"},
    {"checkpoint_write_seconds", "/checkpoint/write_seconds"},
    {"checkpoint_write_bytes_per_second", "/checkpoint/write_bytes_per_second"},
    {"checkpoint_exposed_seconds", "/checkpoint/exposed_seconds"},
    {"checkpoint_read_seconds", "/checkpoint/read_seconds"},
    {"crashes", "/crashes"},
    {"launch", "/launch"},
    {"simulated", "/simulated"},
};

/// Returns the median and the ends of its interval.
Json interval_of(const std::optional<Statistics>& ratio) {
  if (!ratio) return nullptr;
  return {ratio->median, document_of(ratio->ci95_low), document_of(ratio->ci95_high)};
}

/// Returns the result of a row with what the summary adds to it.
Json document_of_row(const SummaryRow& row) {
  Json document = row.result;
  document["row"] = row;
  document["derived"] = {
      {"corrected_speedup", interval_of(row.corrected_speedup)},
      {"over_fastest", interval_of(row.over_fastest)},
      {"communication_share",
       document_of(row.share_of_step({&Breakdown::communication, &Breakdown::idle}))},
      {"product_share", document_of(row.share_of_step({&Breakdown::products}))}};
  if (!row.result.step_seconds) return document;
  const LaunchCounts launches = count_launches(row.result.rounds);
  document["derived"].update({{"rounds", row.result.rounds.size()},
                              {"launches", launches.whole},
                              {"partial_launches", launches.partial}});
  return document;
}

/// Returns a row's values with their names.
Columns columns_of(const SummaryRow& row) {
  const Json document = document_of_row(row);
  Columns found;
  for (const auto& [name, place] : summary_columns) {
    const Json::json_pointer at(place);
    found.emplace_back(name, document.contains(at) ? document.at(at) : Json());
  }
  return found;
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

}  // namespace

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
