// SPDX-License-Identifier: Apache-2.0
#include "run/console.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include <tessera/base/text.hpp>

#include "results/summary.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// The width of a table.
constexpr std::size_t max_columns = 120;

// Cells of the table, from known values.
std::string plain(const Json& value) { return value.get<std::string>(); }
std::string integer(const Json& value) { return value.dump(); }
std::string seconds(const Json& value) { return human_seconds(value); }
std::string percent(double value) { return fmt::format("{:.1f}%", 100 * value); }
std::string share(const Json& value) { return percent(value); }
std::string ratio(const Json& value) { return fmt::format("{:.2f}", value.get<double>()); }
std::string giga(const Json& value) { return fmt::format("{:.3g}", 1e-9 * value.get<double>()); }

std::string rate(const Json& value) {
  return value >= 100 && value < 1e15 ? with_thousands(value.get<Size>())
                                      : fmt::format("{:.3g}", value.get<double>());
}

std::string verdict(const Json& value) {
  return value == "equal" ? "=" : value == "no_reference" ? "?" : "off";
}

/// Returns half the confidence interval over the median.
std::string spread(const Json& row) {
  const Json &low = row.at("step_seconds_ci95_low"), &high = row.at("step_seconds_ci95_high");
  if (low.is_null() || high.is_null()) return "";
  return percent((high.get<double>() - low.get<double>()) / 2 /
                 row.at("step_seconds_median").get<double>());
}

/// Returns the mesh with the factors that have no column, without their sections.
std::string place(const Json& row) {
  std::string mesh = row.at("mesh");
  for (const std::string& factor : other_factors(row.at("factors")))
    mesh.append(" ").append(factor, factor.find('.') + 1);
  return mesh;
}

std::string shortened(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 2) + "..";
}

/// Lists each reason with the first of its cases.
std::string reasons_text(const Json& rows) {
  constexpr std::size_t named = 3;
  std::map<std::string, std::vector<std::string>> cases;
  for (const Json& row : rows)
    if (!row.at("reason").is_null())
      cases[fmt::format("{}: {}", row.at("status").get<std::string>(),
                        row.at("reason").get<std::string>())]
          .push_back(row.at("id"));
  std::string text;
  for (auto& [reason, ids] : cases) {
    const std::size_t more = ids.size() - std::min(ids.size(), named);
    ids.resize(ids.size() - more);
    text += fmt::format("  {}\n    {}{}\n", reason, join(ids),
                        more > 0 ? fmt::format(" and {} more", more) : "");
  }
  return text;
}

struct TableColumn {
  const char* title;
  const char* key;  ///< key of the value in a row; null: the cell depends on the whole row
  std::string (*text)(const Json& value);
  bool is_text = false;

  std::string cell(const Json& row) const {
    const Json& value = key != nullptr ? row.at(key) : row;
    return value.is_null() ? "" : text(value);
  }
};

constexpr TableColumn table_columns[] = {
    {"strategy", "strategy", plain, true},
    {"mesh", nullptr, place, true},
    {"ranks", "ranks", integer},
    {"batch", "global_batch", integer},
    {"mb", "microbatches", integer},
    {"status", "status", plain, true},
    {"step", "step_seconds_median", seconds},
    {"+-", nullptr, spread},
    {"samples/s", "samples_per_second", rate},
    {"speed", "speedup", ratio},
    {"eff", "efficiency", share},
    {"GEMM", "product_share", share},
    {"GF/s/rank", "flops_per_second_per_rank", giga},
    {"MFU", "mfu", share},
    {"loss", "loss_verdict", verdict, true},
};
constexpr std::size_t num_columns = std::size(table_columns);
constexpr std::size_t mesh_column = 1;

using Line = std::array<std::string, num_columns>;

/// Each column is as wide as its widest cell, but the mesh gets the rest of the line.
std::string table_text(const std::vector<Line>& lines) {
  std::array<std::size_t, num_columns> widths{};
  for (const Line& line : lines)
    for (std::size_t c = 0; c < num_columns; ++c) widths[c] = std::max(widths[c], line[c].size());
  const std::size_t all = std::accumulate(widths.begin(), widths.end(), num_columns - 1);
  if (all > max_columns)
    widths[mesh_column] -= std::min(widths[mesh_column] - 4, all - max_columns);
  std::string text;
  for (std::size_t l = 0; l < lines.size(); ++l) {
    std::string line;
    for (std::size_t c = 0; c < num_columns; ++c)
      line += fmt::format(fmt::runtime(table_columns[c].is_text ? "{:<{}} " : "{:>{}} "),
                          shortened(lines[l][c], widths[c]), widths[c]);
    line.erase(line.find_last_not_of(' ') + 1);
    text.append(line).append("\n");
    if (l == 0) text += std::string(std::min(all, max_columns), '-') + "\n";
  }
  return text;
}

/// Returns the lines about the machine's drift and the significance of differences.
std::string machine_text(const Json& machine, bool has_ties) {
  if (machine.at("rounds").is_null()) return "";
  std::string text = "\n";
  if (!machine.at("drift").is_null())
    text += fmt::format("the machine's speed varied by {} between rounds; ",
                        percent(machine.at("drift")));
  if (machine.at("resolution").is_null())
    return text +
           fmt::format("no confidence intervals: they need {} rounds or more\n", enough_rounds);
  return text + fmt::format("differences below {} are not significant\n{}",
                            percent(machine.at("resolution")),
                            has_ties ? "* the fastest, and those indistinguishable from it\n" : "");
}

}  // namespace

std::string summary_table(const Json& summary) {
  const Json& rows = summary.at("cases");
  std::vector<Line> lines(1);
  for (std::size_t c = 0; c < num_columns; ++c) lines[0][c] = table_columns[c].title;
  for (const Json& row : rows) {
    Line& line = lines.emplace_back();
    for (std::size_t c = 0; c < num_columns; ++c) line[c] = table_columns[c].cell(row);
    const Json &id = row.at("id"), &ties = summary.at("ties");
    const bool is_best =
        id == summary.at("best") || std::find(ties.begin(), ties.end(), id) != ties.end();
    line[0].insert(0, is_best ? "* " : "  ");
  }
  lines[0][0].insert(0, "  ");
  std::string text = table_text(lines);

  const std::string reasons = reasons_text(rows);
  std::set<std::string> baselines;
  for (const Json& row : rows)
    if (!row.at("baseline").is_null())
      baselines.insert(fmt::format("  {} ({} a step)\n", row.at("baseline").get<std::string>(),
                                   seconds(row.at("baseline_step_seconds"))));
  if (!baselines.empty()) {
    text += fmt::format("\nspeed and efficiency relative to\n");
    for (const std::string& baseline : baselines) text += baseline;
  }
  if (!reasons.empty()) text += "\nnot measured, with the reason\n" + reasons;
  return text + machine_text(summary.at("machine"), !summary.at("ties").empty());
}

std::string result_text(const Json& summary) {
  std::vector<std::string> parts;
  for (const auto& [status, count] : summary.at("counts").items())
    if (count > 0) parts.push_back(fmt::format("{} {}", count.get<Size>(), status));
  return fmt::format("{} study {}", join(parts), summary.at("study").get<std::string>());
}

std::string figures_of_merit(const Json& summary) {
  std::string text;
  const auto add = [&](const std::string& key, const Json& value, const char* unit) {
    if (!value.is_null())
      text += fmt::format("FOM: {} {:.9g} {}\n", key, value.get<double>(), unit);
  };
  for (const Json& row : summary.at("cases")) {
    if (!is_measured(row.at("status").get<std::string>())) continue;
    const std::string id = row.at("id");
    add(id + ".samples_per_second", row.at("samples_per_second"), "samples/s");
    add(id + ".step_seconds", row.at("step_seconds_median"), "s");
    add(id + ".efficiency", row.at("efficiency"), "1");
    add(id + ".mfu", row.at("mfu"), "1");
    add(id + ".checkpoint_bytes", row.at("checkpoint_bytes"), "B");
    add(id + ".checkpoint_write_seconds", row.at("checkpoint_write_seconds"), "s");
    add(id + ".checkpoint_write_bytes_per_second", row.at("checkpoint_write_bytes_per_second"),
        "B/s");
    add(id + ".checkpoint_exposed_seconds", row.at("checkpoint_exposed_seconds"), "s");
  }
  add("cases_ok", summary.at("counts").at("ok"), "1");
  for (const Json& row : summary.at("cases"))
    if (row.at("id") == summary.at("best"))
      add("best_samples_per_second", row.at("samples_per_second"), "samples/s");
  return text;
}

}  // namespace tessera::bench
