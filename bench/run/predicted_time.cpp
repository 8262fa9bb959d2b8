// SPDX-License-Identifier: Apache-2.0
#include "run/predicted_time.hpp"

#include <algorithm>
#include <limits>

#include <tessera/process/outcome.hpp>

#include "run/case_steps.hpp"

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

}  // namespace tessera::bench
