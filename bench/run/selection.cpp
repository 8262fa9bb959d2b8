// SPDX-License-Identifier: Apache-2.0
#include "run/selection.hpp"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>

namespace tessera::bench {

Selected select_case(const Case& point, const ResultsDirectory& results, const RunOptions& options,
                     double case_seconds, Size ranks) {
  using What = Selected::What;
  if (options.only && *options.only != point.id) return {What::leave, "not selected by --case"};
  const std::string status = results.status(point.id, results.result(point.id), case_seconds);
  const bool again =
      std::count(options.retry.begin(), options.retry.end(), status) > 0 || status == "pending";
  if (point.skip_reason) {
    if (status == "skipped") return {What::keep, "skipped"};
    return {What::skip, *point.skip_reason};
  }
  if (status == "running") return {What::leave, "another launch is running it"};
  // What did not apply then does now: the program or the study has changed.
  if (!again && status != "skipped") return {What::keep, "has a result: " + status};
  if (point.ranks() > ranks)
    return {What::pending, fmt::format("needs {} ranks, the launch has {}", point.ranks(), ranks)};
  return {What::run, status == "pending" ? "" : "again: " + status};
}

// std::shuffle may differ between standard libraries.
std::vector<std::size_t> shuffled(std::vector<std::size_t> numbers, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = numbers.size(); i > 1; --i)
    std::swap(numbers[i - 1], numbers[static_cast<std::size_t>(random() % i)]);
  return numbers;
}

void check_id(const std::vector<Case>& cases, const std::string& id) {
  std::vector<std::string> ids;
  for (const Case& point : cases) ids.push_back(point.id);
  if (std::find(ids.begin(), ids.end(), id) != ids.end()) return;
  const auto near = suggest_nearest(id, ids);
  throw ConfigError("--case", id,
                    "is not a case of the study" + (near ? "; did you mean " + *near + "?"
                                                         : "; tessera-bench list shows them"));
}

}  // namespace tessera::bench
