// SPDX-License-Identifier: Apache-2.0
// Predicted times of a study on a machine.
#pragma once

#include <set>
#include <string>

#include <tessera/predict/machine.hpp>

#include "run/reference_plan.hpp"
#include "study/case.hpp"

namespace tessera::bench {

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

}  // namespace tessera::bench
