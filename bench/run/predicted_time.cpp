// SPDX-License-Identifier: Apache-2.0
#include "run/predicted_time.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <tessera/predict/simulate.hpp>
#include <tessera/process/outcome.hpp>

namespace tessera::bench {
namespace {

/// Returns the steps of all epochs, but at most verify.steps.
Size steps_verified(const Config& config, const VerifyRules& rules) {
  const Size batch = config.training.batch_size;
  const Size most = rules.steps.value_or(std::numeric_limits<Size>::max());
  const Size steps = (config.data.samples - 1) / batch + 1, epochs = config.training.num_epochs;
  return epochs > most / steps ? most : steps * epochs;
}

}  // namespace

Size block_steps(const MeasureRules& rules, double step_seconds) {
  const auto per_round = [&](Size steps) { return (steps + rules.rounds - 1) / rules.rounds; };
  const double wanted = std::min(std::ceil(rules.block_seconds / step_seconds), 1e9);
  return std::max(per_round(rules.steps),
                  std::min(per_round(rules.max_steps), static_cast<Size>(wanted)));
}

double PredictedTime::step_seconds(const Config& config, Size ranks) const {
  const Plan plan = plan_of(config, ranks);
  return simulate(plan, cost_on(machine_, plan)).step_seconds;
}

double PredictedTime::case_seconds(const Case& point, double step_seconds) const {
  const MeasureRules& rules = study_.measure;
  const Size timed = rules.rounds * (rules.warm_up + block_steps(rules, step_seconds));
  return step_seconds * static_cast<double>(steps_verified(point.config, study_.verify) +
                                            rules.instrumented_steps + timed);
}

double PredictedTime::seconds_of(const PlainRun& run, const VerifyRules& rules) const {
  return step_seconds(run.config, run.ranks) *
         static_cast<double>(steps_verified(run.config, rules));
}

double PredictedTime::reference_seconds(const Case& point, std::set<std::string>& made) const {
  if (!study_.verify.enabled || !made.insert(reference_name(point.config)).second) return 0;
  ReferencePlan plan;
  const Outcome outcome = outcome_of(
      [&] { plan = plan_reference(point.config, study_.verify, study_.limits, point.ranks()); });
  if (outcome.failed()) return 0;
  double seconds = seconds_of(plan.run, study_.verify);
  for (const Trial& trial : plan.trials)
    seconds += seconds_of(trial.fewer, {}) + seconds_of(trial.more, {});
  return seconds;
}

double seconds_of(const std::vector<const Case*>& cases, const Study& study,
                  const std::optional<TimeSource>& source) {
  const double limit = study.limits.case_seconds;
  std::set<std::string> references;
  if (!source) {
    if (study.verify.enabled)
      for (const Case* point : cases) references.insert(reference_name(point->config));
    return limit * static_cast<double>(cases.size() + references.size());
  }
  const PredictedTime time(study, source->machine);
  double sum = 0;
  const auto limited = [&](double seconds) {
    return std::min(limit, 10 + source->safety * seconds);
  };
  for (const Case* point : cases) {
    const double step = time.step_seconds(point->config, point->ranks());
    sum += limited(time.case_seconds(*point, step));
    const double reference = time.reference_seconds(*point, references);
    if (reference > 0) sum += limited(reference);
  }
  return sum;
}

}  // namespace tessera::bench
