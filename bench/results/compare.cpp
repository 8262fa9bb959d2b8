// SPDX-License-Identifier: Apache-2.0
#include "results/compare.hpp"

#include <algorithm>
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

struct Line {
  std::string verdict;
  std::string change;
};

Line compare_cases(const Json& before, const Json& after) {
  if (before.at("status") != "ok" || after.at("status") != "ok")
    return {fmt::format("{} -> {}", before.at("status").get<std::string>(),
                        after.at("status").get<std::string>()),
            ""};
  if (!same_work(before, after)) return {"different work", ""};
  const auto verdict = compare_steps(before.at("step_seconds"), after.at("step_seconds"));
  if (!verdict) return {"too few steps", ""};
  const double t0 = before.at("step_seconds").at("median"),
               t1 = after.at("step_seconds").at("median");
  return {*verdict, fmt::format("{:+.1f}%", 100 * (t1 - t0) / t0)};
}

std::string step_text(const Json& result) {
  if (result.at("status") != "ok") return "";
  return human_seconds(result.at("step_seconds").at("median").get<double>());
}

std::string where_from(const ResultsDirectory& directory, const Results& results) {
  for (const Json& result : results.cases) {
    if (result.at("status") != "ok") continue;
    const Json provenance =
        directory.launch(result.at("launch")).value("provenance", Json::object());
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
  const Results old_results = read_results(directories[0]),
                new_results = read_results(directories[1]);
  std::map<std::string, const Json*> old_cases;
  std::size_t width = 4;
  for (const Json& result : old_results.cases) old_cases[result.at("label")] = &result;
  for (const Json& result : new_results.cases)
    width = std::max(width, result.at("label").get<std::string>().size());

  std::string text = fmt::format("before  {}: {}\nafter   {}: {}\n\n", before,
                                 where_from(directories[0], old_results), after,
                                 where_from(directories[1], new_results));
  text +=
      fmt::format("{:<{}} {:>9} {:>9} {:>8}  {}\n", "case", width, "before", "after", "change", "");
  std::map<std::string, Size> counts;
  for (const Json& result : new_results.cases) {
    const std::string label = result.at("label");
    const auto found = old_cases.find(label);
    if (found == old_cases.end()) {
      fmt::format_to(std::back_inserter(text), "{:<{}} {:>9} {:>9} {:>8}  only after\n", label,
                     width, "", step_text(result), "");
      continue;
    }
    const Line line = compare_cases(*found->second, result);
    ++counts[line.verdict];
    fmt::format_to(std::back_inserter(text), "{:<{}} {:>9} {:>9} {:>8}  {}\n", label, width,
                   step_text(*found->second), step_text(result), line.change, line.verdict);
    old_cases.erase(found);
  }
  for (const auto& [label, result] : old_cases)
    fmt::format_to(std::back_inserter(text), "{:<{}} {:>9} {:>9} {:>8}  only before\n", label,
                   width, step_text(*result), "", "");
  std::vector<std::string> parts;
  for (const auto& [verdict, count] : counts) parts.push_back(fmt::format("{} {}", count, verdict));
  return text + "\n" + (parts.empty() ? "no case in common" : join(parts)) + "\n";
}

}  // namespace tessera::bench
