// SPDX-License-Identifier: Apache-2.0
#include "run/untried.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/config/setting_types.hpp>
#include <tessera/predict/advice.hpp>

namespace tessera::bench {
namespace {

/// A search on more ranks takes minutes.
constexpr Size most_ranks = 32;

/// Returns nothing if the search has no mesh for this configuration, as for one with a context
/// axis.
std::vector<Candidate> candidates(const Case& point, const Machine& machine) {
  try {
    return advise(point.config, point.ranks(), machine).fits;
  } catch (const Error&) {
    return {};
  }
}

/// Returns the predicted step of a case; none where ranks share processors.
std::optional<double> predicted_step(const CaseResult& result) {
  if (!result.simulated.empty()) return member_of(result.step_seconds, &StepTimes::median);
  if (!result.prediction || result.prediction->oversubscribed) return std::nullopt;
  return result.prediction->step_seconds;
}

/// Returns the axes that split something, whatever their order, and how they split the batch.
/// `tensor` is `data` without an axis that splits the batch.
std::pair<std::string, std::set<std::string>> split_of(const std::string& strategy,
                                                       const std::string& mesh) {
  std::set<std::string> axes;
  for (const std::string& axis : split_text(mesh, ','))
    if (!axis.ends_with("=1")) axes.insert(axis);
  return {strategy == name_of(Strategy::tensor) ? std::string(name_of(Strategy::data)) : strategy,
          axes};
}

bool is_tried(const Untried& one, const Summary& summary) {
  return std::any_of(summary.cases.begin(), summary.cases.end(), [&](const SummaryRow& row) {
    const nlohmann::json& factors = row.result.factors;
    return row.result.status != "pending" &&
           split_of(factors.at("strategy"), factors.at("mesh")) ==
               split_of(one.strategy, one.mesh) &&
           factors.at("microbatches") == one.microbatches;
  });
}

}  // namespace

std::vector<Untried> untried(const Summary& summary, const std::vector<Case>& cases,
                             const std::function<const Machine*(const Case&)>& machine) {
  std::vector<Untried> found;
  for (const SummaryRow& row : summary.cases) {
    const std::optional<double> fastest = predicted_step(row.result);
    if (row.standing != "fastest" || !fastest || row.result.ranks() > most_ranks) continue;
    const auto point = std::find_if(cases.begin(), cases.end(),
                                    [&](const Case& one) { return one.id == row.result.id; });
    const Machine* known = point == cases.end() ? nullptr : machine(*point);
    if (known == nullptr) continue;
    for (const Candidate& one : candidates(*point, *known)) {
      const TrainingConfig& training = one.config.training;
      Untried next{row.result.id,
                   std::string(name_of(training.distributed.strategy)),
                   one.mesh.to_string(),
                   setting_types::as_json(training.activation_checkpointing),
                   training.microbatches,
                   one.step.step_seconds,
                   *fastest};
      if (*fastest < (1 + smallest_effect) * next.step_seconds) break;  // the shortest come first
      if (is_tried(next, summary)) continue;
      found.push_back(std::move(next));
      break;
    }
  }
  return found;
}

std::string untried_text(const std::vector<Untried>& list) {
  std::string text;
  const std::string none = setting_types::as_json(TrainingConfig{}.activation_checkpointing);
  for (const Untried& one : list)
    text += fmt::format(
        "not tried: {} on {}, microbatches {}{}: predicted {} a step,\n  and {} for {}\n",
        one.strategy, one.mesh, one.microbatches,
        one.activation_checkpointing == none
            ? ""
            : ", activation_checkpointing " + one.activation_checkpointing,
        human_seconds(one.step_seconds), human_seconds(one.fastest_step_seconds), one.fastest);
  return text;
}

}  // namespace tessera::bench
