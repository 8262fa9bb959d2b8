// SPDX-License-Identifier: Apache-2.0
#include "results/compare.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <random>

#include <fmt/format.h>

#include <tessera/base/error.hpp>

#include "measure/rank_test.hpp"
#include "results/documents.hpp"
#include "results/summary.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// Returns false if a configuration key that both have has different values.
bool same_work(const CaseResult& before, const CaseResult& after) {
  for (const auto& [section, keys] : before.config.items()) {
    for (const auto& [key, value] : keys.items()) {
      const Json::json_pointer at = Json::json_pointer() / section / key;
      if (after.config.contains(at) && after.config.at(at) != value) return false;
    }
  }
  return true;
}

/// Two results of one case; either may be null.
struct Pair {
  const CaseResult* before = nullptr;
  const CaseResult* after = nullptr;
};

/// Returns why the results cannot be compared; empty if they can.
std::string obstacle(const Pair& pair) {
  if (pair.before == nullptr) return "only after";
  if (pair.after == nullptr) return "only before";
  if (!pair.before->is_measured() || !pair.after->is_measured())
    return fmt::format("{} -> {}", pair.before->status, pair.after->status);
  if (!same_work(*pair.before, *pair.after)) return "different work";
  const std::size_t rounds =
      std::min(rounds_of(*pair.before).size(), rounds_of(*pair.after).size());
  return rounds < 2 ? "too few rounds" : "";
}

/// The comparison of the rounds of a case.
struct Comparison {
  std::size_t line = 0;
  double ratio = 1;
  double probability = 1;
  double machine_ratio = 1;  ///< seconds of the fixed kernels, after over before
  double detectable = 1;     ///< the smallest ratio that these rounds can distinguish from 1
};

Comparison compare_rounds(std::size_t line, const std::vector<Round>& before,
                          const std::vector<Round>& after, double corrected_level) {
  const double share = best_share({before, after});
  const std::vector<double> a = machine_free(before, share), b = machine_free(after, share);
  const auto machine = [&](const std::vector<Round>& rounds) {
    std::vector<double> seconds;
    for (const Round& round : rounds) seconds.push_back(machine_seconds(round.machine, share));
    return median(std::move(seconds));
  };
  return {line, typical_ratio(a, b), rank_sum_test(a, b), machine(after) / machine(before),
          std::max(1 + smallest_effect, detectable_ratio(a, b, corrected_level))};
}

/// Returns "better", "worse" or "indistinguishable" for each, corrected for their number.
std::vector<std::string> verdicts_of(const std::vector<Comparison>& comparisons) {
  std::vector<double> probabilities;
  for (const Comparison& comparison : comparisons) probabilities.push_back(comparison.probability);
  const std::vector<double> corrected = holm(probabilities);
  std::vector<std::string> verdicts;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const double ratio = comparisons[i].ratio;
    const bool differs =
        corrected[i] <= verdict_level && std::max(ratio, 1 / ratio) >= comparisons[i].detectable;
    verdicts.push_back(!differs ? "indistinguishable" : ratio < 1 ? "better" : "worse");
  }
  return verdicts;
}

Json counts_of(const std::vector<std::string>& verdicts) {
  std::map<std::string, Size> counts;
  for (const std::string& verdict : verdicts) ++counts[verdict];
  return counts;
}

/// Returns null unless the case was measured.
Json step_seconds(const CaseResult* result) {
  if (result == nullptr || !result->is_measured()) return nullptr;
  return result->median_seconds();
}

/// Returns true if a case that was measured before ends in an error now.
bool is_broken(const Pair& pair) {
  if (pair.before == nullptr || pair.after == nullptr || !pair.before->is_measured()) return false;
  const std::string& status = pair.after->status;
  return status == "invalid" || status == "oom" || status == "timeout" || status == "failed";
}

std::string where_from(const ResultsDirectory& directory, const Results& results) {
  for (const CaseResult& result : results.cases) {
    if (!result.is_measured()) continue;
    const auto launch = directory.launch(result.launch);
    const Json provenance = launch ? launch->at("provenance") : Json::object();
    const auto text = [](const Json& part, const char* key) {
      return value_or<std::string>(part, key, "unknown");
    };
    return fmt::format("{}{}, {}, {}", text(provenance, "git_revision"),
                       value_or(provenance, "git_dirty", false) ? " (modified)" : "",
                       text(provenance, "compiler"),
                       text(value_or(provenance, "mpi", Json::object()), "library"));
  }
  return "nothing measured";
}

/// Returns how much slower the fixed kernels ran after; null if nothing was compared.
Json machine_ratio(const std::vector<Comparison>& comparisons) {
  std::vector<double> ratios;
  for (const Comparison& comparison : comparisons) ratios.push_back(comparison.machine_ratio);
  return ratios.empty() ? Json() : finite(median(std::move(ratios)));
}

}  // namespace

Json compare_results(const std::string& before, const std::string& after) {
  const ResultsDirectory directories[] = {ResultsDirectory(before), ResultsDirectory(after)};
  const Results results[] = {read_results(directories[0]), read_results(directories[1])};
  std::vector<std::string> labels;  // those of the new results first
  std::map<std::string, Pair> cases;
  for (const std::size_t side : {1, 0})
    for (const CaseResult& result : results[side].cases) {
      const auto [found, is_new] = cases.try_emplace(result.label);
      if (is_new) labels.push_back(found->first);
      (side == 0 ? found->second.before : found->second.after) = &result;
    }
  if (std::none_of(cases.begin(), cases.end(), [](const auto& entry) {
        return entry.second.before != nullptr && entry.second.after != nullptr;
      }))
    throw Error(ExitCode::usage, "{} and {} have no case in common", before, after);
  std::vector<std::string> verdicts;
  for (const std::string& label : labels) verdicts.push_back(obstacle(cases.at(label)));
  const auto compared = std::count(verdicts.begin(), verdicts.end(), "");
  std::vector<Comparison> comparisons;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Pair& pair = cases.at(labels[i]);
    if (verdicts[i].empty())
      comparisons.push_back(compare_rounds(i, rounds_of(*pair.before), rounds_of(*pair.after),
                                           verdict_level / static_cast<double>(compared)));
  }
  std::vector<Json> changes(labels.size()), finds(labels.size());
  const std::vector<std::string> found = verdicts_of(comparisons);
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const Comparison& comparison = comparisons[i];
    verdicts[comparison.line] = found[i];
    changes[comparison.line] = finite(comparison.ratio);
    finds[comparison.line] = finite(comparison.detectable);
  }
  bool regressed = false;
  Json rows = Json::array();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Pair& pair = cases.at(labels[i]);
    regressed |= verdicts[i] == "worse" || is_broken(pair);
    rows.push_back({{"label", labels[i]},
                    {"before_step_seconds", step_seconds(pair.before)},
                    {"after_step_seconds", step_seconds(pair.after)},
                    {"ratio", changes[i]},
                    {"detectable_ratio", finds[i]},
                    {"verdict", verdicts[i]}});
  }
  const auto side = [&](std::size_t s, const std::string& path) -> Json {
    return {{"directory", path}, {"program", where_from(directories[s], results[s])}};
  };
  return {{"schema_version", 1},           {"before", side(0, before)},
          {"after", side(1, after)},       {"machine_ratio", machine_ratio(comparisons)},
          {"compared", compared},          {"regressed", regressed},
          {"counts", counts_of(verdicts)}, {"cases", rows}};
}

std::string compare_with_itself(const std::string& directory) {
  const Results results = read_results(ResultsDirectory(directory));
  std::mt19937_64 random(1);
  std::vector<Comparison> halves;
  Size splits = 0, wrong = 0;
  for (const CaseResult& result : results.cases) {
    std::vector<Round> rounds = rounds_of(result);
    const auto middle = rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2);
    if (rounds.size() < 4) continue;
    const auto compare = [&](double corrected_level) {
      return compare_rounds(0, {rounds.begin(), middle}, {middle, rounds.end()}, corrected_level);
    };
    halves.push_back(compare(verdict_level));
    for (Size split = 0; split < 100; ++split, ++splits) {
      std::shuffle(rounds.begin(), rounds.end(), random);
      wrong += verdicts_of({compare(verdict_level)}).front() != "indistinguishable";
    }
  }
  if (halves.empty())
    throw Error(ExitCode::usage,
                "{}: a comparison needs at least four rounds, and no case has them", directory);
  return fmt::format(
      "{}: {} cases, the rounds of each compared with each other; any difference is a false alarm\n"
      "first half against second half: {}\n"
      "random halves, case by case: {:.1f}% of {} comparisons report a difference\n",
      directory, halves.size(), counts_text(counts_of(verdicts_of(halves))),
      100.0 * static_cast<double>(wrong) / static_cast<double>(splits), splits);
}

}  // namespace tessera::bench
