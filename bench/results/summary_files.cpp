// SPDX-License-Identifier: Apache-2.0
// The files of a summary: summary.json, cases.csv, steps.csv.
#include <set>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/text.hpp>

#include "results/summary.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

using Columns = std::vector<std::pair<std::string, Json>>;

/// Columns of summary.json and cases.csv that have their values in one object of document_of_row().
struct ColumnGroup {
  const char* place;
  const char* keys;
  const char* prefix = "";  ///< of the names of the columns, before the key
};
constexpr ColumnGroup column_groups[] = {
    {"", "id label status reason"},
    {"/factors", "strategy mesh ranks"},
    {"/derived", "nodes"},
    {"/factors", "global_batch"},
    {"/row", "batch_per_rank"},
    {"/factors", "microbatches"},
    {"/step_seconds", "median mad min p95 max ci95_low ci95_high ci95_problem n outliers",
     "step_seconds_"},
    {"/derived", "rounds launches partial_launches"},
    {"", "samples_per_second"},
    {"/row",
     "same_program_as baseline baseline_ranks baseline_step_seconds scaling speedup efficiency"},
    {"/derived", "corrected_speedup corrected_speedup_low corrected_speedup_high"},
    {"/row", "standing"},
    {"/derived",
     "over_fastest over_fastest_low over_fastest_high over_fastest_on_ranks "
     "over_fastest_on_ranks_low over_fastest_on_ranks_high"},
    {"/loss", "verdict largest_relative_difference", "loss_"},
    {"/row", "final_loss"},
    {"/breakdown", "step_seconds", "instrumented_"},
    {"/derived",
     "compute_seconds communication_seconds idle_seconds optimizer_seconds other_seconds "
     "product_seconds launch_seconds communication_share product_share"},
    {"/compute", "flops_per_second flops_per_second_per_rank"},
    {"/row", "gemm_peak_flops_per_second mfu"},
    {"/memory", "planned_bytes measured_bytes"},
    {"/prediction", "step_seconds", "predicted_"},
    {"/checkpoint", "bytes write_seconds write_bytes_per_second exposed_seconds read_seconds",
     "checkpoint_"},
    {"", "crashes launch simulated"},
};

/// Returns the value at a place in a document, or null.
Json found_at(const Json& document, const std::string& place) {
  const Json::json_pointer at(place);
  return document.contains(at) ? document.at(at) : Json();
}

/// Adds the median and the ends of its interval.
void add_interval(Json& derived, const std::string& name, const std::optional<Statistics>& ratio) {
  if (!ratio) return;
  derived[name] = ratio->median;
  derived[name + "_low"] = document_of(ratio->ci95_low);
  derived[name + "_high"] = document_of(ratio->ci95_high);
}

/// Returns the result of a row with what the summary adds to it.
Json document_of_row(const SummaryRow& row) {
  Json document = row.result;
  document["row"] = row;
  Json derived{{"nodes", found_at(document, "/case/nodes/count")},
               {"communication_share",
                document_of(row.share_of_step({&Breakdown::communication, &Breakdown::idle}))},
               {"product_share", document_of(row.share_of_step({&Breakdown::products}))}};
  add_interval(derived, "corrected_speedup", row.corrected_speedup);
  add_interval(derived, "over_fastest", row.over_fastest);
  add_interval(derived, "over_fastest_on_ranks", row.over_fastest_on_ranks);
  for (const auto& [name, part] : {std::pair("compute_seconds", "compute"),
                                   {"communication_seconds", "communication"},
                                   {"idle_seconds", "idle"},
                                   {"optimizer_seconds", "optimizer"},
                                   {"other_seconds", "other"},
                                   {"product_seconds", "products"},
                                   {"launch_seconds", "launches"}})
    derived[name] = found_at(document, fmt::format("/breakdown/{}/mean_rank_seconds", part));
  if (row.result.step_seconds) {
    const LaunchCounts launches = count_launches(row.result.rounds);
    derived["rounds"] = row.result.rounds.size();
    derived["launches"] = launches.whole;
    derived["partial_launches"] = launches.partial;
  }
  document["derived"] = std::move(derived);
  return document;
}

/// Returns a row's values with their names.
Columns columns_of(const SummaryRow& row) {
  const Json document = document_of_row(row);
  Columns found;
  for (const ColumnGroup& group : column_groups)
    for (const std::string& key : split_text(group.keys, ' '))
      found.emplace_back(group.prefix + key, found_at(document, group.place + ("/" + key)));
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
