// SPDX-License-Identifier: Apache-2.0
#include "results/compare.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include <tessera/base/text.hpp>

#include "results/summary.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// An effect smaller than this is none, however narrow the intervals are.
constexpr double smallest_effect = 0.03;

/// Keys of a configuration that both have, with other values: then the work may be another.
bool same_work(const Json& before, const Json& after) {
  for (const auto& [section, keys] : before.at("config").items()) {
    for (const auto& [key, value] : keys.items()) {
      const Json::json_pointer at("/config/" + section + "/" + key);
      if (after.contains(at) && after.at(at) != value) return false;
    }
  }
  return true;
}

struct Comparison {
  std::string verdict;
  std::string change{};
};

/// Of the results of one case, where one of them may be missing.
Comparison compare_cases(const Json* before, const Json* after) {
  if (before == nullptr) return {"only after"};
  if (after == nullptr) return {"only before"};
  if (before->at("status") != "ok" || after->at("status") != "ok")
    return {fmt::format("{} -> {}", before->at("status").get<std::string>(),
                        after->at("status").get<std::string>())};
  if (!same_work(*before, *after)) return {"different work"};
  const Json &old_step = before->at("step_seconds"), &new_step = after->at("step_seconds");
  const auto verdict = compare_steps(old_step, new_step);
  if (!verdict) return {"too few steps"};
  const double t0 = old_step.at("median"), t1 = new_step.at("median");
  return {*verdict, fmt::format("{:+.1f}%", 100 * (t1 - t0) / t0)};
}

std::string step_text(const Json* result) {
  if (result == nullptr || result->at("status") != "ok") return "";
  return human_seconds(result->at("step_seconds").at("median").get<double>());
}

std::string where_from(const ResultsDirectory& directory, const Results& results) {
  for (const Json& result : results.cases) {
    if (result.at("status") != "ok") continue;
    const Json launch = directory.launch(result.at("launch")).value_or(Json::object());
    const Json provenance = launch.value("provenance", Json::object());
    return fmt::format("{}{}, {}, {}", provenance.value("git_revision", "unknown"),
                       provenance.value("git_dirty", false) ? " (modified)" : "",
                       provenance.value("compiler", "unknown"),
                       provenance.value(Json::json_pointer("/mpi/library"), "unknown"));
  }
  return "nothing measured";
}

}  // namespace

std::optional<std::string> compare_steps(const Json& before, const Json& after) {
  for (const Json* side : {&before, &after})
    if (side->at("ci95_low").is_null() || side->at("ci95_high").is_null()) return std::nullopt;
  const double t0 = before.at("median"), t1 = after.at("median");
  const bool is_large = std::abs(t1 - t0) >= smallest_effect * t0;
  const bool disjoint = before.at("ci95_high") < after.at("ci95_low") ||
                        after.at("ci95_high") < before.at("ci95_low");
  if (!is_large || !disjoint) return "indistinguishable";
  return t1 < t0 ? "better" : "worse";
}

std::string compare_results(const std::string& before, const std::string& after) {
  const ResultsDirectory directories[] = {ResultsDirectory(before), ResultsDirectory(after)};
  const Results results[] = {read_results(directories[0]), read_results(directories[1])};
  std::vector<std::string> labels;  // those of the new results first
  std::map<std::string, std::array<const Json*, 2>> cases;
  for (const std::size_t side : {1, 0})
    for (const Json& result : results[side].cases) {
      const auto [found, is_new] = cases.try_emplace(result.at("label"));
      if (is_new) labels.push_back(found->first);
      found->second[side] = &result;
    }
  std::size_t width = 4;
  for (const std::string& label : labels) width = std::max(width, label.size());

  std::string text = fmt::format("before  {}: {}\nafter   {}: {}\n\n", before,
                                 where_from(directories[0], results[0]), after,
                                 where_from(directories[1], results[1]));
  const auto add_line = [&](auto... cells) {
    fmt::format_to(std::back_inserter(text), "{:<{}} {:>9} {:>9} {:>8}  {}\n", cells...);
  };
  add_line("case", width, "before", "after", "change", "");
  std::map<std::string, Size> counts;
  for (const std::string& label : labels) {
    const auto [old_result, new_result] = cases.at(label);
    const Comparison comparison = compare_cases(old_result, new_result);
    ++counts[comparison.verdict];
    add_line(label, width, step_text(old_result), step_text(new_result), comparison.change,
             comparison.verdict);
  }
  std::vector<std::string> parts;
  for (const auto& [verdict, count] : counts) parts.push_back(fmt::format("{} {}", count, verdict));
  return text + "\n" + join(parts) + "\n";
}

}  // namespace tessera::bench
