// SPDX-License-Identifier: Apache-2.0
// Whether two sets of rounds differ: nonparametric, so that outliers and heavy tails cannot feign a
// difference.
#pragma once

#include <vector>

namespace tessera::bench {

/// The probability of rank sums at least as far from what is expected, if both sets were drawn from
/// one distribution: Mann and Whitney (1947), two-sided, exact over all permutations, ties
/// included; of large sets (sizes that multiply to more than 2,500) by the normal distribution, to
/// which their sums come near. 1 for an empty set.
double rank_sum_test(const std::vector<double>& a, const std::vector<double>& b);

/// Probabilities corrected for their number (Holm 1979): whoever rejects those up to alpha rejects
/// a true hypothesis at all with a probability of at most alpha.
std::vector<double> holm(const std::vector<double>& probabilities);

/// By what factor b is larger than a: the median of all ratios (Hodges and Lehmann 1963). Values
/// are positive.
double typical_ratio(const std::vector<double>& a, const std::vector<double>& b);

/// The smallest factor that rank_sum_test() would have found between two sets that scatter like
/// these, at this level; infinite if there are too few values to find any.
double detectable_ratio(const std::vector<double>& a, const std::vector<double>& b, double level);

}  // namespace tessera::bench
