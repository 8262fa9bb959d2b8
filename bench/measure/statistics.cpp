// SPDX-License-Identifier: Apache-2.0
#include "measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace tessera::bench {
namespace {

std::vector<double> distances(const std::vector<double>& values, double from) {
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - from));
  return distances;
}

/// P(Binomial(n, 1/2) = k), through logarithms: 2^-n underflows from n = 1075 on.
double binomial_half(double n, double k) {
  return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                  n * std::log(2.0));
}

}  // namespace

double median(std::vector<double> values) { return percentile(std::move(values), 0.5); }

double median_absolute_deviation(const std::vector<double>& values) {
  return median(distances(values, median(values)));
}

double percentile(std::vector<double> values, double fraction) {
  std::sort(values.begin(), values.end());
  const double place = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

std::optional<Interval> median_confidence(std::vector<double> values) {
  const auto n = static_cast<double>(values.size());
  double tail = 0;
  std::size_t j = 0;  // how many values lie outside on either side, plus one
  while (static_cast<double>(j) < n / 2) {
    tail += binomial_half(n, static_cast<double>(j));
    if (tail > 0.025) break;
    ++j;
  }
  if (j == 0) return std::nullopt;
  std::sort(values.begin(), values.end());
  return Interval{values[j - 1], values[values.size() - j]};
}

Size count_outliers(const std::vector<double>& values) {
  const double limit = 5 * 1.4826 * median_absolute_deviation(values);
  const std::vector<double> far = distances(values, median(values));
  return std::count_if(far.begin(), far.end(), [&](double d) { return d > limit; });
}

Statistics statistics_of(const std::vector<double>& values) {
  if (values.empty()) throw std::invalid_argument("statistics of no values");
  Statistics statistics;
  statistics.median = median(values);
  statistics.mad = median_absolute_deviation(values);
  statistics.min = *std::min_element(values.begin(), values.end());
  statistics.max = *std::max_element(values.begin(), values.end());
  statistics.p95 = percentile(values, 0.95);
  statistics.n = static_cast<Size>(values.size());
  statistics.outliers = count_outliers(values);
  statistics.ci95 = median_confidence(values);
  return statistics;
}

bool is_within(const Statistics& statistics, double share) {
  return statistics.ci95 &&
         (statistics.ci95->high - statistics.ci95->low) / 2 <= share * statistics.median;
}

}  // namespace tessera::bench
