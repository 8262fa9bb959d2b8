// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>

#include "measure/statistics.hpp"
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
  // Simulated rounds have no fixed kernels beside them.
  if (const bool was = !pair.before->simulated.empty(); was == pair.after->simulated.empty())
    return was ? "simulated -> measured" : "measured -> simulated";
  return pair.before->rounds.empty() || pair.after->rounds.empty() ? "too few rounds" : "";
}

/// The comparison of the rounds of a case.
struct RoundsCompared {
  double ratio = 1;
  double probability = 1;
  double machine_ratio = 1;  ///< seconds of the fixed kernels, after over before
  double detectable = 1;     ///< the smallest ratio that these rounds can distinguish from 1
};

RoundsCompared compare_rounds(const std::vector<Round>& before, const std::vector<Round>& after,
                              double corrected_level) {
  const double share = best_share({before, after});
  const std::vector<double> a = machine_free(before, share), b = machine_free(after, share);
  const auto machine = [&](const std::vector<Round>& rounds) {
    std::vector<double> seconds;
    for (const Round& round : rounds) seconds.push_back(machine_seconds(round.machine, share));
    return median(std::move(seconds));
  };
  return {typical_ratio(a, b), rank_sum_test(a, b), machine(after) / machine(before),
          std::max(1 + smallest_effect, detectable_ratio(a, b, corrected_level))};
}

/// Returns "better", "worse", "indistinguishable" or "too few rounds" for each, corrected for their
/// number.
std::vector<std::string> verdicts_of(const std::vector<RoundsCompared>& comparisons) {
  std::vector<double> probabilities;
  for (const RoundsCompared& comparison : comparisons)
    probabilities.push_back(comparison.probability);
  const std::vector<double> corrected = holm(probabilities);
  std::vector<std::string> verdicts;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const double ratio = comparisons[i].ratio;
    const bool differs =
        corrected[i] <= verdict_level && std::max(ratio, 1 / ratio) >= comparisons[i].detectable;
    verdicts.push_back(std::isinf(comparisons[i].detectable) ? "too few rounds"
                       : !differs                            ? "indistinguishable"
                       : ratio < 1                           ? "better"
                                                             : "worse");
  }
  return verdicts;
}

std::string percent(const std::optional<double>& ratio) {
  return ratio && std::isfinite(*ratio) ? fmt::format("{:+.1f}%", 100 * (*ratio - 1)) : "-";
}

/// Returns why a change of at least 3 % has no verdict; empty if it has one.
std::string reason_of(const ComparedCase& one, const Pair& pair, Size cases) {
  if (one.verdict == "too few rounds")
    return fmt::format("{} before, {} after; {} of each are needed for {}",
                       rounds_of(*pair.before).size(), rounds_of(*pair.after).size(),
                       fewest_values(verdict_level / static_cast<double>(cases)),
                       counted(cases, "case"));
  if (one.verdict == "indistinguishable" &&
      std::max(*one.ratio, 1 / *one.ratio) >= 1 + smallest_effect)
    return fmt::format("changes below {} are lost in the scatter of the rounds",
                       percent(one.detectable_ratio));
  return "";
}

/// Returns the number of cases with each verdict: "2 better, 1 worse".
std::string counts_text(const std::map<std::string, Size>& counts) {
  std::vector<std::string> parts;
  for (const auto& [verdict, count] : counts) parts.push_back(fmt::format("{} {}", count, verdict));
  return join(parts);
}

std::optional<double> step_seconds(const CaseResult* result) {
  if (result == nullptr || !result->is_measured()) return std::nullopt;
  return result->step_seconds->median;
}

/// Returns true if a case that was measured before ends in an error now.
bool is_broken(const Pair& pair) {
  if (pair.before == nullptr || pair.after == nullptr || !pair.before->is_measured()) return false;
  const std::string& status = pair.after->status;
  return status == "invalid" || status == "oom" || status == "timeout" || status == "failed";
}

/// Returns the program that measured the first measured case.
std::string program_of(const ResultsDirectory& directory, const Results& results) {
  const auto known = [](const std::string& text) { return text.empty() ? "unknown" : text; };
  for (const CaseResult& result : results.cases) {
    if (!result.is_measured()) continue;
    const LaunchProgram launch = directory.program(result.launch).value_or(LaunchProgram());
    return fmt::format("{}{}, {}, {}", known(launch.program.git_revision),
                       launch.program.git_dirty.value_or(false) ? " (modified)" : "",
                       known(launch.program.compiler), known(launch.mpi_library));
  }
  return "nothing measured";
}

std::string step_text(const std::optional<double>& seconds) {
  return seconds ? human_seconds(*seconds) : "";
}

std::string machine_text(const std::optional<double>& ratio) {
  if (!ratio) return "";
  return fmt::format(
      "the machine was {} after, judging by the fixed kernels; changes are corrected for it\n\n",
      *ratio < 1 ? fmt::format("{:.1f}% faster", 100 * (1 / *ratio - 1))
                 : fmt::format("{:.1f}% slower", 100 * (*ratio - 1)));
}

}  // namespace

Comparison compare_results(const std::string& before, const std::string& after) {
  const ResultsDirectory directories[] = {ResultsDirectory(before), ResultsDirectory(after)};
  const Results results[] = {read_results(directories[0]), read_results(directories[1])};
  std::vector<std::string> labels;  // those of the new results first
  std::map<std::string, Pair> pairs;
  for (const std::size_t side : {1, 0})
    for (const CaseResult& result : results[side].cases) {
      const auto [found, is_new] = pairs.try_emplace(result.label);
      if (is_new) labels.push_back(found->first);
      (side == 0 ? found->second.before : found->second.after) = &result;
    }
  if (std::none_of(pairs.begin(), pairs.end(), [](const auto& entry) {
        return entry.second.before != nullptr && entry.second.after != nullptr;
      }))
    throw Error(ExitCode::usage, "{} and {} have no case in common", before, after);
  Comparison comparison;
  comparison.before = {before, program_of(directories[0], results[0])};
  comparison.after = {after, program_of(directories[1], results[1])};
  Size comparable = 0;
  for (const std::string& label : labels) {
    const Pair& pair = pairs.at(label);
    comparison.cases.push_back(
        {label, step_seconds(pair.before), step_seconds(pair.after), {}, {}, obstacle(pair), {}});
    comparable += comparison.cases.back().verdict.empty();
  }
  std::vector<ComparedCase*> compared;
  std::vector<RoundsCompared> rounds;
  std::vector<double> machine_ratios;
  for (ComparedCase& one : comparison.cases) {
    if (!one.verdict.empty()) continue;
    const Pair& pair = pairs.at(one.label);
    rounds.push_back(compare_rounds(rounds_of(*pair.before), rounds_of(*pair.after),
                                    verdict_level / static_cast<double>(comparable)));
    one.ratio = rounds.back().ratio;
    one.detectable_ratio = rounds.back().detectable;
    if (pair.before->simulated.empty()) machine_ratios.push_back(rounds.back().machine_ratio);
    compared.push_back(&one);
  }
  if (!machine_ratios.empty()) comparison.machine_ratio = median(machine_ratios);
  const std::vector<std::string> found = verdicts_of(rounds);
  for (std::size_t i = 0; i < compared.size(); ++i) {
    compared[i]->verdict = found[i];
    compared[i]->reason = reason_of(*compared[i], pairs.at(compared[i]->label), comparable);
    comparison.compared += found[i] != "too few rounds";
  }
  for (const ComparedCase& one : comparison.cases) {
    ++comparison.counts[one.verdict];
    comparison.regressed |= one.verdict == "worse" || is_broken(pairs.at(one.label));
  }
  return comparison;
}

std::string comparison_text(const Comparison& comparison) {
  std::size_t width = 4;
  for (const ComparedCase& one : comparison.cases) width = std::max(width, one.label.size());
  std::string text =
      fmt::format("before  {}: {}\nafter   {}: {}\n", comparison.before.directory,
                  comparison.before.program, comparison.after.directory, comparison.after.program) +
      machine_text(comparison.machine_ratio);
  const auto add_line = [&](auto... cells) {
    text += fmt::format("{:<{}} {:>9} {:>9} {:>8} {:>8}  {}\n", cells...);
  };
  add_line("case", width, "before", "after", "change", "finds", "");
  for (const ComparedCase& one : comparison.cases)
    add_line(one.label, width, step_text(one.before_step_seconds),
             step_text(one.after_step_seconds), one.ratio ? percent(one.ratio) : "",
             one.ratio ? percent(one.detectable_ratio) : "",
             one.reason.empty() ? one.verdict : one.verdict + ": " + one.reason);
  return text + "\n" + counts_text(comparison.counts) +
         "\nfinds: the smallest change that can be detected with the scatter of these rounds\n";
}
}  // namespace tessera::bench
