// SPDX-License-Identifier: Apache-2.0
// Statistics of repeated measurements. Nothing here drops a measurement.
#pragma once

#include <optional>
#include <vector>

#include <tessera/base/types.hpp>

namespace tessera::bench {

struct Interval {
  double low = 0;
  double high = 0;
};

/// The mean of the two in the middle if their number is even. Not of nothing.
double median(std::vector<double> values);

/// Median of the distances from the median.
double median_absolute_deviation(const std::vector<double>& values);

/// The value below which `fraction` of the values lie, between neighbours by straight lines.
double percentile(std::vector<double> values, double fraction);

/// At least 95 % confidence for the median of what the values were drawn from, whatever its
/// distribution: the j-th smallest and j-th largest value, where j is the largest rank with
/// P(Binomial(n, 1/2) < j) <= 2.5 %. None of fewer than six values.
std::optional<Interval> median_confidence(std::vector<double> values);

/// Values further than 5 standard deviations from the median, the deviation estimated robustly as
/// 1.4826 MAD.
Size count_outliers(const std::vector<double>& values);

struct Statistics {
  double median = 0;
  double mad = 0;
  double min = 0;
  double p95 = 0;
  double max = 0;
  Size n = 0;
  Size outliers = 0;
  std::optional<Interval> ci95;  ///< of the median
};
/// Throws std::invalid_argument for no values.
Statistics statistics_of(const std::vector<double>& values);

/// Whether the half width of the confidence interval is at most this share of the median.
bool is_within(const Statistics& statistics, double share);

}  // namespace tessera::bench
