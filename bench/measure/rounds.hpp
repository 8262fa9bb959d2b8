// SPDX-License-Identifier: Apache-2.0
// A case is measured in rounds: short blocks of steps, spread over a launch. Neighbouring steps see
// the same machine, rounds do not: what is said of a case rests on how its rounds scatter.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "measure/machine_probe.hpp"
#include "measure/statistics.hpp"

namespace tessera::bench {

/// A block of steps, and the machine beside it.
struct Round {
  std::string launch;
  double at = 0;       ///< seconds since the launch began
  double seconds = 0;  ///< median of the block's steps, each on its slowest rank
  MachineSpeed machine;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Round, launch, at, seconds, machine)

/// Fewer rounds than this have no interval of 95 %.
inline constexpr Size enough_rounds = 6;

/// The chance of a false verdict that is taken.
inline constexpr double verdict_level = 0.05;

/// An effect smaller than this is none, however little the rounds scatter.
inline constexpr double smallest_effect = 0.03;

/// What the fixed kernels took: product^share memory^(1 - share).
double machine_seconds(const MachineSpeed& machine, double share = 0.5);

/// The steps' seconds over the fixed kernels': what a change of the machine's speed leaves as it
/// is.
std::vector<double> machine_free(const std::vector<Round>& rounds, double share);

/// Whether a case's speed follows that of the product (1), of the memory (0) or of both (0.5): the
/// share with which these sets of its rounds, each by itself, scatter least.
double best_share(const std::vector<std::vector<Round>>& sets);

/// Of a case: median and interval between its rounds, the rest over all steps. Where there are
/// several launches, the interval is no narrower than Student's between their medians.
Statistics statistics_of(const std::vector<Round>& rounds, const std::vector<double>& steps);

/// How many times slower `other` is than `base`, round by round of the same launch, corrected for
/// what the machine did meanwhile if that makes the ratios scatter less. Of no pairs: n is 0.
Statistics paired_ratio(const std::vector<Round>& base, const std::vector<Round>& other);

/// By which factor the machine was slower beside the slow rounds (the 95th percentile) than beside
/// the fast ones (the 5th). Rounds on the same number of ranks are compared; the largest factor of
/// all groups. 1 for a single round.
double drift_of(const std::map<Size, std::vector<Round>>& rounds_by_ranks);

/// The smallest factor that can be told from 1 by a case whose rounds scatter like these; infinite
/// for too few of them.
double resolution_of(const std::vector<Round>& rounds);

}  // namespace tessera::bench
