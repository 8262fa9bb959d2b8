// SPDX-License-Identifier: Apache-2.0
// Statistics of repeated measurements (bench/METHOD.md, Statistics). Nothing here drops a
// measurement. Rounds are short blocks of steps spread over a launch. Neighbouring steps see the
// same state of the machine, so statistics use the scatter of the rounds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/base/types.hpp>

#include "measure/machine_speed.hpp"

namespace tessera::bench {

struct Statistics {
  double median = 0;  ///< mean of the two middle values if their number is even
  double mad = 0;     ///< median distance from the median
  double min = 0;
  double p95 = 0;  ///< 95th percentile, interpolated linearly
  double max = 0;
  /// Interval of at least 95 % confidence for the median of any distribution, by order statistics.
  /// None for fewer than six values.
  std::optional<double> ci95_low{}, ci95_high{};
  Size n = 0;
  /// Values further than 5 x 1.4826 MAD from the median; 1.4826 MAD estimates the standard
  /// deviation.
  Size outliers = 0;
  std::string ci95_problem{};  ///< why rounds have no interval; empty if they have one
};
/// Throws std::invalid_argument for no values.
Statistics statistics_of(std::vector<double> values);

double median(std::vector<double> values);

// Nonparametric tests of the difference between two sets of rounds, which outliers and heavy tails
// do not disturb (bench/METHOD.md, Statistics).

/// Returns the two-sided probability of rank sums at least as far from their mean if both sets come
/// from one distribution (Mann and Whitney 1947). It is exact over all permutations, ties included;
/// if the sizes multiply to more than 2,500, it uses the normal approximation. Returns 1 for an
/// empty set.
double rank_sum_test(const std::vector<double>& a, const std::vector<double>& b);

/// Returns the fewest values that each of two sets needs for rank_sum_test() to return at most
/// `level`.
Size fewest_values(double level);

/// Returns probabilities corrected for their number (Holm 1979). Rejecting those up to alpha
/// rejects any true hypothesis with a probability of at most alpha.
std::vector<double> holm(const std::vector<double>& probabilities);

/// Returns the factor by which b is larger than a: the median of all ratios (Hodges and Lehmann
/// 1963). Values are positive.
double typical_ratio(const std::vector<double>& a, const std::vector<double>& b);

/// Returns the smallest factor that rank_sum_test() finds at this level between two sets that
/// scatter like these. It is infinite if there are too few values.
double detectable_ratio(const std::vector<double>& a, const std::vector<double>& b, double level);

/// A block of steps, and the speed of the machine beside it.
struct Round {
  std::string launch;
  double at = 0;
  double seconds = 0;
  MachineSpeed machine;

  static void fields(auto& f, auto& v) {
    f("launch", v.launch);
    f("at", v.at, "seconds since the launch began");
    f("seconds", v.seconds, "median of the block's steps, each on its slowest rank", positive);
    f("machine", v.machine, "times of the fixed kernels, mean of before and after");
  }
};

/// The fewest rounds that have a 95 % interval.
inline constexpr Size enough_rounds = 6;

/// The largest factor between the ends of an interval. A wider one says nothing.
inline constexpr double widest_interval = 10;

/// The accepted probability of a false verdict.
inline constexpr double verdict_level = 0.05;

/// The smallest effect that is reported, even if the rounds scatter little.
inline constexpr double smallest_effect = 0.03;

/// Returns the seconds of the fixed kernels: product^share memory^(1 - share).
double machine_seconds(const MachineSpeed& machine, double share = 0.5);

/// Returns the steps' seconds over those of the fixed kernels, which a change of the machine's
/// speed does not affect.
std::vector<double> machine_free(const std::vector<Round>& rounds, double share);

/// Returns the weight of the product in the machine's speed for which these sets of a case's rounds
/// scatter least, each by itself: 1 (product), 0 (memory) or 0.5 (both).
double best_share(const std::vector<std::vector<Round>>& sets);

/// Launches by whether they have as many rounds as the launch with the most. The others were cut
/// short.
struct LaunchCounts {
  Size whole = 0, partial = 0;
};
LaunchCounts count_launches(const std::vector<Round>& rounds);

/// Returns the statistics of a case: median and interval of its rounds, the others of all steps.
/// With several whole launches, the interval is no narrower than Student's interval of their
/// medians. An interval wider than widest_interval is absent.
Statistics statistics_of(const std::vector<Round>& rounds, const std::vector<double>& steps);

/// Returns the statistics of the ratios of `other` to `base`, paired by round and launch. They are
/// corrected for the speed of the machine if the ratios then scatter less. Without pairs, n is 0.
Statistics paired_ratio(const std::vector<Round>& base, const std::vector<Round>& other);

/// Returns the factor between the 95th and the 5th percentile of the fixed kernels' seconds, which
/// is 1 for a single round. All rounds have the same number of ranks and of threads.
double drift_of(const std::vector<Round>& rounds);

/// Returns the smallest factor that a case whose rounds scatter like these can distinguish from 1.
/// It is infinite for too few rounds.
double resolution_of(const std::vector<Round>& rounds);

}  // namespace tessera::bench
