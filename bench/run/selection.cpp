// SPDX-License-Identifier: Apache-2.0
#include "run/selection.hpp"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/process/outcome.hpp>

#include "results/summary.hpp"

namespace tessera::bench {

namespace {

/// Returns what the launch lacks for the case, as a sentence; none if it lacks nothing.
std::optional<std::string> lack_of(const Case& point, const Capacity& capacity) {
  const DistributedConfig& distributed = point.config.training.distributed;
  if (point.ranks() > capacity.ranks)
    return fmt::format("needs {} ranks, but the launch has {}", point.ranks(), capacity.ranks);
  if (distributed.threads && capacity.threads && *distributed.threads != *capacity.threads)
    return fmt::format("needs {} per rank, but the launch has {}; set OMP_NUM_THREADS",
                       counted(*distributed.threads, "thread"), *capacity.threads);
  const Outcome backend = outcome_of([&] {
    const Backend asked = point.config.comm.backend;
    if (capacity.backend) choose_backend(asked, *capacity.backend);
  });
  if (backend.failed()) return backend.message;
  return std::nullopt;
}

/// Counts the launches that ended during this case, and so left it "running".
Size lost_launches(const ResultsDirectory& results, const CaseResult& latest) {
  Size lost = latest.status == "running" ? 1 : 0;
  for (Size n = 1; n < latest.attempt; ++n)
    if (const auto earlier = results.attempt(latest.id, n); earlier && earlier->status == "running")
      ++lost;
  return lost;
}

}  // namespace

Selected select_case(const Case& point, const ResultsDirectory& results, const RunOptions& options,
                     const Study& study, const Capacity& capacity) {
  using What = Selected::What;
  const std::optional<CaseResult> result = results.result(point.id);
  const std::string status = results.status(point.id, result, study.limits.case_seconds);
  const bool retries = std::count(options.retry.begin(), options.retry.end(), status) > 0;
  const bool again = retries || status == "pending";
  // A killed launch, or one of several launches, has left rounds.
  const bool has_rounds =
      result && !result->rounds.empty() && (result->is_measured() || status == "pending");
  const bool continues =
      !retries && has_rounds && result->launches.value_or(1) < study.measure.launches;
  if (point.skip_reason) {
    if (status == "skipped") return {What::keep, false, "skipped"};
    return {What::skip, false, *point.skip_reason};
  }
  const std::vector<std::string>& only = options.only;
  if (!only.empty() && std::find(only.begin(), only.end(), point.id) == only.end())
    return {What::leave, false, "not selected by --case"};
  if (status == "running") return {What::leave, false, "another launch is running it"};
  // A skipped case applies now, because the program or the study has changed.
  if (!again && !continues && status != "skipped")
    return {What::keep, false, "has a result: " + status};
  if (options.give_up && status == "pending" && result) {
    const Size lost = lost_launches(results, *result);
    if (lost >= *options.give_up)
      return {What::give_up, false, fmt::format("launches that ended during it: {}", lost)};
  }
  if (const auto lack = lack_of(point, capacity)) return {What::pending, false, *lack};
  if (continues) return {What::run, true, "more rounds"};
  return {What::run, false, status == "pending" ? "" : "again: " + status};
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
