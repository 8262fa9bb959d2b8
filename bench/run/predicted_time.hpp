// SPDX-License-Identifier: Apache-2.0
// How long a study takes on a machine that a file describes.
#pragma once

#include <set>
#include <string>

#include <tessera/predict/machine.hpp>

#include "run/reference_plan.hpp"
#include "study/case.hpp"

namespace tessera::bench {

/// Predicted seconds, without set-up. All throw ConfigError if the machine has too few ranks.
class PredictedTime {
 public:
  PredictedTime(const Study& study, const Machine& machine) : study_(study), machine_(machine) {}

  double step_seconds(const Config& config, Size ranks) const;

  /// Of a case with steps of this length on its mesh: verification, instrumented steps and, as if
  /// it were set up again for every round, warm-up and timed steps.
  double case_seconds(const Case& point, double step_seconds) const;

  /// How long the ranks of a case wait for its reference and those of its trials that are not yet
  /// `made`, in a launch of as many ranks; 0 where there is nothing to make.
  double reference_seconds(const Case& point, std::set<std::string>& made) const;

 private:
  double seconds_of(const PlainRun& run, const VerifyRules& rules) const;

  const Study& study_;
  const Machine& machine_;
};

}  // namespace tessera::bench
