// SPDX-License-Identifier: Apache-2.0
// Predicted times of a study on a machine.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tessera/predict/machine.hpp>

#include "run/reference_plan.hpp"
#include "study/case.hpp"

namespace tessera::bench {

/// Returns the number of steps of a round, for steps of this length: enough for block_seconds, and
/// in all rounds together between the study's steps and max_steps.
Size block_steps(const MeasureRules& rules, double step_seconds);

/// Predicted seconds without set-up. All functions throw ConfigError if the machine has too few
/// ranks.
class PredictedTime {
 public:
  PredictedTime(const Study& study, const Machine& machine) : study_(study), machine_(machine) {}

  double step_seconds(const Config& config, Size ranks) const;

  /// Returns the seconds of a case with steps of this length: verification, instrumented steps, and
  /// warm-up and timed steps, as if every round set it up again.
  double case_seconds(const Case& point, double step_seconds) const;

  /// Returns the seconds of a case's reference with its trials, in a launch with the ranks of the
  /// case, and adds it to `made`. Returns 0 if it was made before or if there is none.
  double reference_seconds(const Case& point, std::set<std::string>& made) const;

 private:
  double seconds_of(const PlainRun& run, const VerifyRules& rules) const;

  const Study& study_;
  const Machine& machine_;
};

/// The machine that predicts cases, and the factor by which measured times may exceed predicted
/// ones.
struct TimeSource {
  Machine machine;
  double safety = 3;
};

/// Returns the seconds that these cases need in one launch, without its start. Each case and each
/// of their references takes ten seconds of set-up plus `safety` times its predicted steps, but at
/// most limits.case_seconds. Without a source, it takes limits.case_seconds. Throws ConfigError if
/// the machine has too few ranks for a case.
double seconds_of(const std::vector<const Case*>& cases, const Study& study,
                  const std::optional<TimeSource>& source);

}  // namespace tessera::bench
