// SPDX-License-Identifier: Apache-2.0
// Nonparametric tests of the difference between two sets of rounds, which outliers and heavy tails
// do not disturb (bench/README.md, Statistics).
#pragma once

#include <vector>

namespace tessera::bench {

/// Returns the two-sided probability of rank sums at least as far from their mean if both sets come
/// from one distribution (Mann and Whitney 1947). It is exact over all permutations, ties included;
/// if the sizes multiply to more than 2,500, it uses the normal approximation. Returns 1 for an
/// empty set.
double rank_sum_test(const std::vector<double>& a, const std::vector<double>& b);

/// Returns probabilities corrected for their number (Holm 1979). Rejecting those up to alpha
/// rejects any true hypothesis with a probability of at most alpha.
std::vector<double> holm(const std::vector<double>& probabilities);

/// Returns the factor by which b is larger than a: the median of all ratios (Hodges and Lehmann
/// 1963). Values are positive.
double typical_ratio(const std::vector<double>& a, const std::vector<double>& b);

/// Returns the smallest factor that rank_sum_test() finds at this level between two sets that
/// scatter like these. It is infinite if there are too few values.
double detectable_ratio(const std::vector<double>& a, const std::vector<double>& b, double level);

}  // namespace tessera::bench
