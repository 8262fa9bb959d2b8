// SPDX-License-Identifier: Apache-2.0
// How long jobs may have to run: what their time limits rest on.
#pragma once

#include <optional>
#include <vector>

#include <tessera/predict/machine.hpp>

#include "study/case.hpp"

namespace tessera::bench {

/// The time that a launch takes beside its cases: start of the ranks, GEMM peaks and machine.
inline constexpr double launch_seconds = 120;

/// A machine on which cases are predicted, and by how much measured times may exceed predicted
/// ones.
struct TimeSource {
  Machine machine;
  double safety = 3;
};

/// Seconds that these cases need in one launch, without launch_seconds: of each, and of each
/// reference that some of them share, the limit (limits.case_seconds) or, if less, its prediction
/// times `safety`, plus ten seconds of set-up. What is predicted of a case is the verification,
/// warm-up, instrumented and timed steps. Throws ConfigError if the machine has too few ranks for a
/// case.
double seconds_of(const std::vector<const Case*>& cases, const Study& study,
                  const std::optional<TimeSource>& source);

}  // namespace tessera::bench
