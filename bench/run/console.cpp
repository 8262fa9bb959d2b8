// SPDX-License-Identifier: Apache-2.0
#include "run/console.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
namespace tessera::bench {
namespace {

/// The width of a table.
constexpr std::size_t max_columns = 120;

// Cells of the table; a number that is not known gives an empty one.
using Number = std::optional<double>;
std::string percent(Number share) { return share ? fmt::format("{:.1f}%", 100 * *share) : ""; }
std::string seconds(Number value) { return value ? human_seconds(*value) : ""; }
std::string ratio(Number value) { return value ? fmt::format("{:.2f}", *value) : ""; }
std::string giga(Number value) { return value ? fmt::format("{:.3g}", 1e-9 * *value) : ""; }

std::string rate(Number value) {
  if (!value) return "";
  return *value >= 100 && *value < 1e15 ? with_thousands(static_cast<Size>(*value))
                                        : fmt::format("{:.3g}", *value);
}

std::string verdict(const std::optional<LossResult>& loss) {
  if (!loss || loss->verdict.empty()) return "";
  return loss->verdict == "equal" ? "=" : loss->verdict == "no_reference" ? "?" : "off";
}

/// Returns half the confidence interval over the median.
std::string spread(const std::optional<StepTimes>& step) {
  if (!step || !step->ci95_low || !step->ci95_high) return "";
  return percent((*step->ci95_high - *step->ci95_low) / 2 / step->median);
}

/// Returns the mesh with the factors that have no column, without their sections.
std::string place(const CaseResult& result) {
  std::string mesh = result.factors.at("mesh");
  for (const std::string& factor : other_factors(result.factors))
    mesh.append(" ").append(factor, factor.find('.') + 1);
  return mesh;
}

std::string shortened(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 2) + "..";
}

/// Lists each reason with the first of its cases.
std::string reasons_text(const std::vector<SummaryRow>& rows) {
  constexpr std::size_t named = 3;
  std::map<std::string, std::vector<std::string>> cases;
  for (const SummaryRow& row : rows)
    if (!row.result.reason.empty())
      cases[fmt::format("{}: {}", row.result.status, row.result.reason)].push_back(row.result.id);
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
  std::string (*cell)(const SummaryRow& row);
  bool is_text = false;
};

constexpr TableColumn table_columns[] = {
    {"strategy",
     [](const SummaryRow& row) { return row.result.factors.at("strategy").get<std::string>(); },
     true},
    {"mesh", [](const SummaryRow& row) { return place(row.result); }, true},
    {"ranks", [](const SummaryRow& row) { return std::to_string(row.result.ranks()); }},
    {"batch", [](const SummaryRow& row) { return std::to_string(row.result.batch()); }},
    {"mb", [](const SummaryRow& row) { return row.result.factors.at("microbatches").dump(); }},
    {"status", [](const SummaryRow& row) { return row.result.status; }, true},
    {"step",
     [](const SummaryRow& row) {
       return seconds(member_of(row.result.step_seconds, &StepTimes::median));
     }},
    {"+-", [](const SummaryRow& row) { return spread(row.result.step_seconds); }},
    {"samples/s", [](const SummaryRow& row) { return rate(row.result.samples_per_second); }},
    {"speed", [](const SummaryRow& row) { return ratio(row.speedup); }},
    {"eff", [](const SummaryRow& row) { return percent(row.efficiency); }},
    {"GEMM",
     [](const SummaryRow& row) { return percent(row.share_of_step({&Breakdown::products})); }},
    {"GF/s/rank",
     [](const SummaryRow& row) {
       return giga(member_of(row.result.compute, &ComputeResult::flops_per_second_per_rank));
     }},
    {"MFU",
     [](const SummaryRow& row) {
       return percent(member_of(row.result.compute, &ComputeResult::mfu));
     }},
    {"loss", [](const SummaryRow& row) { return verdict(row.result.loss); }, true},
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
std::string machine_text(const MachineDrift& machine, bool has_ties) {
  if (!machine.rounds) return "";
  std::string text = "\n";
  if (machine.drift)
    text +=
        fmt::format("the machine's speed varied by {} between rounds; ", percent(machine.drift));
  if (!machine.resolution)
    return text +
           fmt::format("no confidence intervals: they need {} rounds or more\n", enough_rounds);
  return text + fmt::format("differences below {} are not significant\n{}",
                            percent(machine.resolution),
                            has_ties ? "* the fastest, and those indistinguishable from it\n" : "");
}

}  // namespace

std::string summary_table(const Summary& summary) {
  std::vector<Line> lines(1);
  for (std::size_t c = 0; c < num_columns; ++c) lines[0][c] = table_columns[c].title;
  std::set<std::string> baselines;
  for (const SummaryRow& row : summary.cases) {
    Line& line = lines.emplace_back();
    for (std::size_t c = 0; c < num_columns; ++c) line[c] = table_columns[c].cell(row);
    const std::string& id = row.result.id;
    const bool is_best =
        id == summary.best || std::count(summary.ties.begin(), summary.ties.end(), id) > 0;
    line[0].insert(0, is_best ? "* " : "  ");
    if (!row.baseline.empty())
      baselines.insert(
          fmt::format("  {} ({} a step)\n", row.baseline, seconds(row.baseline_step_seconds)));
  }
  lines[0][0].insert(0, "  ");
  std::string text = table_text(lines);
  if (!baselines.empty()) text += "\nspeed and efficiency relative to\n";
  for (const std::string& baseline : baselines) text += baseline;
  const std::string reasons = reasons_text(summary.cases);
  if (!reasons.empty()) text += "\nnot measured, with the reason\n" + reasons;
  return text + machine_text(summary.machine, !summary.ties.empty());
}

std::string result_text(const Summary& summary) {
  std::vector<std::string> parts;
  for (const auto& [status, count] : summary.counts)
    if (count > 0) parts.push_back(fmt::format("{} {}", count, status));
  return fmt::format("{} study {}", join(parts), summary.study);
}

std::string figures_of_merit(const Summary& summary) {
  std::string text;
  const auto add = [&](const std::string& key, Number value, const char* unit) {
    if (value && std::isfinite(*value))
      text += fmt::format("FOM: {} {:.9g} {}\n", key, *value, unit);
  };
  for (const SummaryRow& row : summary.cases) {
    const CaseResult& result = row.result;
    if (!result.is_measured()) continue;
    const std::string id = result.id + ".";
    add(id + "samples_per_second", result.samples_per_second, "samples/s");
    add(id + "step_seconds", result.step_seconds->median, "s");
    add(id + "efficiency", row.efficiency, "1");
    add(id + "mfu", member_of(result.compute, &ComputeResult::mfu), "1");
    if (const std::optional<CheckpointTimes>& checkpoint = result.checkpoint) {
      add(id + "checkpoint_bytes", static_cast<double>(checkpoint->bytes), "B");
      add(id + "checkpoint_write_seconds", checkpoint->write_seconds, "s");
      add(id + "checkpoint_write_bytes_per_second", checkpoint->write_bytes_per_second(), "B/s");
      add(id + "checkpoint_exposed_seconds", checkpoint->exposed_seconds, "s");
    }
  }
  add("cases_ok", static_cast<double>(summary.counts.at("ok")), "1");
  for (const SummaryRow& row : summary.cases)
    if (row.result.id == summary.best)
      add("best_samples_per_second", row.result.samples_per_second, "samples/s");
  return text;
}

}  // namespace tessera::bench
