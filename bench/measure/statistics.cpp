// SPDX-License-Identifier: Apache-2.0
#include "measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace tessera::bench {
namespace {

/// Returns the value below which `fraction` of the sorted values lie, interpolated linearly.
double percentile(const std::vector<double>& sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// P(Binomial(n, 1/2) = k), by logarithms, because 2^-n underflows from n = 1075 on.
double binomial_half(double n, double k) {
  return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                  n * std::log(2.0));
}

/// Returns the j-th smallest and the j-th largest value, where j is the largest rank with
/// P(Binomial(n, 1/2) < j) <= 2.5 %.
std::optional<Interval> median_confidence(const std::vector<double>& sorted) {
  const auto n = static_cast<double>(sorted.size());
  double tail = 0;
  std::size_t j = 0;  // one more than the values outside on either side
  while (static_cast<double>(j) < n / 2) {
    tail += binomial_half(n, static_cast<double>(j));
    if (tail > 0.025) break;
    ++j;
  }
  if (j == 0) return std::nullopt;
  return Interval{sorted[j - 1], sorted[sorted.size() - j]};
}

}  // namespace

Statistics statistics_of(std::vector<double> values) {
  if (values.empty()) throw std::invalid_argument("statistics of no values");
  std::sort(values.begin(), values.end());
  Statistics s;
  s.median = percentile(values, 0.5);
  s.min = values.front();
  s.p95 = percentile(values, 0.95);
  s.max = values.back();
  s.n = static_cast<Size>(values.size());
  s.ci95 = median_confidence(values);
  for (double& value : values) value = std::abs(value - s.median);
  std::sort(values.begin(), values.end());
  s.mad = percentile(values, 0.5);
  s.outliers = std::count_if(values.begin(), values.end(),
                             [&](double distance) { return distance > 5 * 1.4826 * s.mad; });
  return s;
}

double median(std::vector<double> values) { return statistics_of(std::move(values)).median; }

}  // namespace tessera::bench
