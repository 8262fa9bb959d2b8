// SPDX-License-Identifier: Apache-2.0
// Time limits of jobs.
#pragma once

#include <optional>
#include <vector>

#include <tessera/predict/machine.hpp>

#include "study/case.hpp"

namespace tessera::bench {

/// Seconds of a launch without its cases: start of the ranks, GEMM peaks, measuring the machine.
inline constexpr double launch_seconds = 120;

/// The machine that predicts cases, and the factor by which measured times may exceed predicted
/// ones.
struct TimeSource {
  Machine machine;
  double safety = 3;
};

/// Returns the seconds that these cases need in one launch, without launch_seconds. Each case and
/// each of their references takes ten seconds of set-up plus `safety` times its predicted steps
/// (verification, warm-up, instrumented and timed), but at most limits.case_seconds. Without a
/// source, it takes limits.case_seconds. Throws ConfigError if the machine has too few ranks for a
/// case.
double seconds_of(const std::vector<const Case*>& cases, const Study& study,
                  const std::optional<TimeSource>& source);

}  // namespace tessera::bench
