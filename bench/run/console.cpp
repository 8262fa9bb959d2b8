// SPDX-License-Identifier: Apache-2.0
#include "run/console.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include <tessera/base/text.hpp>

#include "results/summary.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

constexpr const char* line_format =
    "{:<1} {:<8} {:<{}} {:>5} {:>6} {:>3} {:<8} {:>8} {:>6} {:>10} {:>6} {:>6} {:>5}  {}\n";

std::string percent(const Json& value) {
  return value.is_null() ? "" : fmt::format("{:.1f}%", 100 * value.get<double>());
}

std::string ratio(const Json& value) {
  return value.is_null() ? "" : fmt::format("{:.2f}", value.get<double>());
}

std::string seconds(const Json& value) {
  return value.is_null() ? "" : human_seconds(value.get<double>());
}

std::string rate(const Json& value) {
  if (value.is_null()) return "";
  const double number = value.get<double>();
  return number >= 100 ? with_thousands(static_cast<Size>(number)) : fmt::format("{:.3g}", number);
}

/// Half the confidence interval over the median.
std::string spread(const Json& row) {
  const Json &low = row.at("step_seconds_ci95_low"), &high = row.at("step_seconds_ci95_high");
  if (low.is_null() || high.is_null()) return "";
  return fmt::format("{:.1f}%", 50 * (high.get<double>() - low.get<double>()) /
                                    row.at("step_seconds_median").get<double>());
}

std::string loss_text(const Json& verdict) {
  if (verdict.is_null()) return "";
  if (verdict == "equal") return "=";
  if (verdict == "no_reference") return "?";
  return "off";
}

std::string other_factors(const Json& factors) {
  std::string text;
  for (const auto& [key, value] : factors.items())
    if (key.find('.') != std::string::npos)
      text += fmt::format(" {}={}", key.substr(key.find('.') + 1),
                          value.is_string() ? value.get<std::string>() : value.dump());
  return text;
}

/// Mesh with the factors that have no column.
std::string place(const Json& row) {
  return row.at("mesh").get<std::string>() + other_factors(row.at("factors"));
}

std::string shortened(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 2) + "..";
}

/// Cases that ended alike together, the first of them by name.
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
    fmt::format_to(std::back_inserter(text), "  {}\n    {}{}\n", reason, join(ids),
                   more > 0 ? fmt::format(" and {} more", more) : "");
  }
  return text;
}

std::string row_text(const Json& row, bool is_best, std::size_t width) {
  std::string text = fmt::format(
      fmt::runtime(line_format), is_best ? "*" : "", row.at("strategy").get<std::string>(),
      shortened(place(row), width), width, row.at("ranks").get<Size>(),
      row.at("global_batch").get<Size>(), row.at("microbatches").get<Size>(),
      row.at("status").get<std::string>(), seconds(row.at("step_seconds_median")), spread(row),
      rate(row.at("samples_per_second")), ratio(row.at("speedup")), percent(row.at("efficiency")),
      percent(row.at("mfu")), loss_text(row.at("loss_verdict")));
  text.erase(text.find_last_not_of(" \n") + 1);
  return text + "\n";
}

}  // namespace

std::string summary_table(const Json& summary) {
  const Json& rows = summary.at("cases");
  std::size_t width = 10;
  for (const Json& row : rows) width = std::max(width, place(row).size());
  width = std::min<std::size_t>(width, 30);  // 120 columns in all
  std::string text =
      fmt::format(fmt::runtime(line_format), "", "strategy", "mesh", width, "ranks", "batch", "mb",
                  "status", "step", "+-", "samples/s", "speed", "eff", "MFU", "loss");
  text += std::string(text.size() - 1, '-') + "\n";
  for (const Json& row : rows) text += row_text(row, row.at("id") == summary.at("best"), width);

  const std::string reasons = reasons_text(rows);
  std::set<std::string> baselines;
  for (const Json& row : rows)
    if (!row.at("baseline").is_null())
      baselines.insert(fmt::format("  {} ({} a step)\n", row.at("baseline").get<std::string>(),
                                   seconds(row.at("baseline_step_seconds"))));
  if (!baselines.empty()) {
    text += fmt::format("\nspeed and efficiency against\n");
    for (const std::string& baseline : baselines) text += baseline;
  }
  if (!reasons.empty()) text += "\nwhy not\n" + reasons;
  return text;
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
      fmt::format_to(std::back_inserter(text), "FOM: {} {:.9g} {}\n", key, value.get<double>(),
                     unit);
  };
  for (const Json& row : summary.at("cases")) {
    if (row.at("status") != "ok") continue;
    const std::string id = row.at("id");
    add(id + ".samples_per_second", row.at("samples_per_second"), "samples/s");
    add(id + ".step_seconds", row.at("step_seconds_median"), "s");
    add(id + ".efficiency", row.at("efficiency"), "1");
    add(id + ".mfu", row.at("mfu"), "1");
  }
  add("cases_ok", count_of(summary, "ok"), "1");
  for (const Json& row : summary.at("cases"))
    if (row.at("id") == summary.at("best"))
      add("best_samples_per_second", row.at("samples_per_second"), "samples/s");
  return text;
}

}  // namespace tessera::bench
