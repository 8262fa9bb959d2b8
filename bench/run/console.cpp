// SPDX-License-Identifier: Apache-2.0
#include "run/console.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include <tessera/base/text.hpp>

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

// Cells of the table; a number that is not known gives an empty one.
using Number = std::optional<double>;
std::string percent(Number share) { return share ? fmt::format("{:.1f}%", 100 * *share) : ""; }
std::string seconds(Number value) { return value ? human_seconds(*value) : ""; }
std::string ratio(Number value) { return value ? fmt::format("{:.2f}", *value) : ""; }
std::string giga(Number value) {
  return !value ? "" : *value < 1e12 ? fmt::format("{:.3g}", 1e-9 * *value) : rate(1e-9 * *value);
}

/// The mark of a case among those that do the same work.
struct Mark {
  char mark;
  const char* words;
  bool (*applies)(const SummaryRow& row);
};
constexpr Mark marks[] = {
    {'*', "fastest of the cases that do the same work",
     [](const SummaryRow& row) { return row.standing == "fastest"; }},
    {'~', "cannot be told apart from the fastest",
     [](const SummaryRow& row) { return row.standing == "tied"; }},
    {'=', "on one rank the same program as another case, so differences from it are noise",
     [](const SummaryRow& row) { return !row.same_program_as.empty(); }}};

char mark_of(const SummaryRow& row) {
  for (const Mark& mark : marks)
    if (mark.applies(row)) return mark.mark;
  return ' ';
}

std::string verdict(const std::optional<LossResult>& loss) {
  if (!loss || loss->verdict.empty()) return "";
  if (loss->verdict == "equal" && loss->tolerance == 0) return "≡";
  return loss->verdict == "equal" ? "equal" : loss->verdict == "no_reference" ? "?" : "off";
}

/// Returns half the confidence interval over the median.
std::string spread(const std::optional<StepTimes>& step) {
  if (!step || !step->ci95_low || !step->ci95_high) return "";
  return percent((*step->ci95_high - *step->ci95_low) / 2 / step->median);
}

struct ValueColumn {
  const char* title;
  std::string (*cell)(const SummaryRow& row);
  int spare = 0;
  bool is_text = false;
};

constexpr ValueColumn value_columns[] = {
    {"status", [](const SummaryRow& row) { return row.result.status; }, 0, true},
    {"step",
     [](const SummaryRow& row) {
       return seconds(member_of(row.result.step_seconds, &StepTimes::median));
     }},
    {"+-", [](const SummaryRow& row) { return spread(row.result.step_seconds); }},
    {"samples/s", [](const SummaryRow& row) { return rate(row.result.samples_per_second); }},
    {"speed", [](const SummaryRow& row) { return ratio(row.speedup); }},
    {"eff", [](const SummaryRow& row) { return percent(row.efficiency); }, 1},
    {"GEMM",
     [](const SummaryRow& row) { return percent(row.share_of_step({&Breakdown::products})); }, 3},
    {"GF/s/rank",
     [](const SummaryRow& row) {
       return giga(member_of(row.result.compute, &ComputeResult::flops_per_second_per_rank));
     },
     4},
    {"MFU", [](const SummaryRow& row) { return percent(row.mfu); }, 2},
    {"loss", [](const SummaryRow& row) { return verdict(row.result.loss); }, 0, true},
};

/// Returns the lines about the machine's drift and the significance of differences.
std::string machine_text(const MachineDrift& machine) {
  if (!machine.rounds || !machine.timing_reliable) return "";
  std::string text = "\n";
  if (machine.drift)
    text +=
        fmt::format("the machine's speed varied by {} between rounds\n", percent(machine.drift));
  if (machine.resolution)
    text += fmt::format("rounds of the median case tell differences of {} from none\n",
                        percent(machine.resolution));
  if (!*machine.timing_reliable)
    text += wrapped(
        split_text("times are not reliable, so no case is named as the fastest: " + machine.problem,
                   ' '),
        " ", "");
  return text;
}

/// Explains the marks of the first column.
std::string marks_text(const std::vector<SummaryRow>& rows) {
  std::string text;
  for (const Mark& mark : marks)
    if (std::any_of(rows.begin(), rows.end(), mark.applies))
      text += fmt::format("{} {}\n", mark.mark, mark.words);
  return text;
}

/// Returns a paragraph with each reason and the cases that have it; "" if no case has one.
std::string paragraph(const char* title, const Reasons& reasons) {
  return reasons.empty() ? "" : fmt::format("\n{}\n{}", title, reasons_text(reasons));
}

}  // namespace

std::string rate(std::optional<double> value) {
  if (!value) return "";
  if (*value >= 1000 && *value < 1e15) return with_thousands(std::llround(*value));
  const int digits =
      *value > 0 ? std::clamp(3 - static_cast<int>(std::floor(std::log10(*value))), 0, 9) : 0;
  return fmt::format("{:.{}f}", *value, digits);
}

std::string summary_table(const Summary& summary) {
  std::vector<Json> factors;
  std::set<std::string> baselines;
  TextColumn marks{"", {}, true};
  for (const SummaryRow& row : summary.cases) {
    factors.push_back(row.result.factors);
    marks.cells.emplace_back(1, mark_of(row));
    if (!row.baseline.empty())
      baselines.insert(
          fmt::format("  {} ({} a step)\n", row.baseline, seconds(row.baseline_step_seconds)));
  }
  std::vector<TextColumn> columns = factor_columns(factors);
  columns.insert(columns.begin(), std::move(marks));
  for (const ValueColumn& value : value_columns) {
    TextColumn& column = columns.emplace_back(
        TextColumn{value.title, {}, value.is_text, value.is_text, value.spare});
    for (const SummaryRow& row : summary.cases) column.cells.push_back(value.cell(row));
  }
  std::string text = table_text(std::move(columns)) + marks_text(summary.cases);
  if (!baselines.empty()) text += "\nspeed and eff: samples/s over those of\n";
  for (const std::string& baseline : baselines) text += baseline;
  Reasons not_measured, no_interval;
  for (const SummaryRow& row : summary.cases) {
    const CaseResult& result = row.result;
    if (!result.reason.empty())
      not_measured[fmt::format("{}: {}", result.status, result.reason)].push_back(result.id);
    if (result.step_seconds && !result.step_seconds->ci95_problem.empty())
      no_interval[result.step_seconds->ci95_problem].push_back(result.id);
  }
  return text + paragraph("not measured, with the reason", not_measured) +
         paragraph("no confidence interval, with the reason", no_interval) +
         machine_text(summary.machine);
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
    add(id + "mfu", row.mfu, "1");
    if (const std::optional<CheckpointTimes>& checkpoint = result.checkpoint) {
      add(id + "checkpoint_bytes", static_cast<double>(checkpoint->bytes), "B");
      add(id + "checkpoint_write_seconds", checkpoint->write_seconds, "s");
      add(id + "checkpoint_write_bytes_per_second", checkpoint->write_bytes_per_second(), "B/s");
      add(id + "checkpoint_exposed_seconds", checkpoint->exposed_seconds, "s");
    }
  }
  add("cases_ok", static_cast<double>(summary.counts.at("ok")), "1");
  add("best_samples_per_second", summary.best_samples_per_second, "samples/s");
  if (const auto reliable = summary.machine.timing_reliable)
    add("timing_reliable", *reliable ? 1 : 0, "1");
  return text;
}

}  // namespace tessera::bench
