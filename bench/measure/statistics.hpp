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
  double median = 0;  ///< the mean of the two in the middle if their number is even
  double mad = 0;     ///< median of the distances from the median
  double min = 0;
  double p95 = 0;  ///< the value below which 95 % lie, between neighbours by straight lines
  double max = 0;
  Size n = 0;
  /// Further than 5 standard deviations from the median, the deviation estimated robustly as
  /// 1.4826 MAD.
  Size outliers = 0;
  /// At least 95 % confidence for the median of what the values were drawn from, whatever its
  /// distribution, by order statistics. None of fewer than six values.
  std::optional<Interval> ci95;
};
/// Throws std::invalid_argument for no values.
Statistics statistics_of(std::vector<double> values);

double median(std::vector<double> values);

}  // namespace tessera::bench
