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

struct Statistics {
  double median = 0;  ///< mean of the two middle values if their number is even
  double mad = 0;     ///< median distance from the median
  double min = 0;
  double p95 = 0;  ///< 95th percentile, interpolated linearly
  double max = 0;
  Size n = 0;
  /// Values further than 5 x 1.4826 MAD from the median; 1.4826 MAD estimates the standard
  /// deviation.
  Size outliers = 0;
  /// Interval of at least 95 % confidence for the median of any distribution, by order statistics.
  /// None for fewer than six values.
  std::optional<Interval> ci95;
};
/// Throws std::invalid_argument for no values.
Statistics statistics_of(std::vector<double> values);

double median(std::vector<double> values);

}  // namespace tessera::bench
