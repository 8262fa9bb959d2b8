// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/predict/advice.hpp>
#include <tessera/predict/simulate.hpp>
#include <tessera/process/outcome.hpp>

#include "run/console.hpp"
#include "run/reference_plan.hpp"

namespace tessera::bench {
namespace {

/// A search on more ranks may take a minute.
constexpr Size most_ranks = 64;

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

/// Returns why nothing is predicted for a case; "" if something is.
std::string unknown_because(const CaseResult& result, const Machine* machine) {
  if (machine == nullptr) return "no machine of this launch predicts it";
  if (result.prediction && result.prediction->oversubscribed) return "its ranks share processors";
  if (result.ranks() > most_ranks)
    return fmt::format("a search on more than {} ranks takes too long", most_ranks);
  return "";
}

nlohmann::json recomputation_of(const Config& config) {
  return setting_of("training.activation_checkpointing").get(config);
}

/// Searches for a shorter step. Both steps are predicted on this machine: the prediction in a
/// result may be that of an earlier launch.
Untried search(const Case& fastest, const Machine& machine, const Summary& summary) {
  const Plan plan = plan_of(fastest.config, fastest.ranks(), machine.target());
  const double own = simulate(plan, cost_on(machine, plan)).step_seconds;
  const SearchOptions options{.best = summary.cases.size() + 1,
                              .below = own / (1 + smallest_effect)};
  for (const Candidate& one : advise(fastest.config, fastest.ranks(), machine, options).fits) {
    const TrainingConfig& training = one.config.training;
    Untried next{fastest.id,
                 "",
                 std::string(name_of(training.distributed.strategy)),
                 one.mesh.to_string(),
                 recomputation_of(one.config),
                 training.microbatches,
                 one.step.step_seconds,
                 own};
    if (!is_tried(next, summary)) return next;
  }
  return {};
}

}  // namespace

std::vector<Untried> untried(const Summary& summary, const std::vector<Case>& cases,
                             const std::function<const Machine*(const Case&)>& machine) {
  std::vector<Untried> found;
  for (const SummaryRow& row : summary.cases) {
    const auto point = std::find_if(cases.begin(), cases.end(),
                                    [&](const Case& one) { return one.id == row.result.id; });
    if (row.standing != "fastest" || point == cases.end()) continue;
    const Machine* const known = machine(*point);
    Untried next;
    next.unknown = unknown_because(row.result, known);
    // The search has no mesh for some configurations, as for one with a context axis.
    if (next.unknown.empty()) {
      const Outcome outcome = outcome_of([&] { next = search(*point, *known, summary); });
      if (outcome.failed()) next.unknown = outcome.message;
    }
    if (!next.unknown.empty()) next.fastest = row.result.id;
    if (!next.fastest.empty()) found.push_back(std::move(next));
  }
  return found;
}

std::string untried_text(const std::vector<Untried>& list) {
  std::string text;
  Reasons unknown;
  const std::string none = recomputation_of({});
  for (const Untried& one : list)
    if (!one.unknown.empty())
      unknown[one.unknown].push_back(one.fastest);
    else
      text += fmt::format(
          "not tried: {} on {}, microbatches {}{}: predicted {} a step,\n  and {} for {}\n",
          one.strategy, one.mesh, one.microbatches,
          one.activation_checkpointing == none
              ? ""
              : ", activation_checkpointing " + one.activation_checkpointing,
          human_seconds(one.step_seconds), human_seconds(one.fastest_step_seconds), one.fastest);
  if (!unknown.empty()) text += "no suggestion, with the reason\n" + reasons_text(unknown);
  return text.empty() ? text : "\n" + text;
}

}  // namespace tessera::bench
