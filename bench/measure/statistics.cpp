// SPDX-License-Identifier: Apache-2.0
#include "measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
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

/// Sets the interval to the j-th smallest and the j-th largest value, where j is the largest rank
/// with P(Binomial(n, 1/2) < j) <= 2.5 %.
void set_interval(Statistics& s, const std::vector<double>& sorted) {
  const auto n = static_cast<double>(sorted.size());
  double tail = 0;
  std::size_t j = 0;  // one more than the values outside on either side
  while (static_cast<double>(j) < n / 2) {
    tail += binomial_half(n, static_cast<double>(j));
    if (tail > 0.025) break;
    ++j;
  }
  if (j == 0) return;
  s.ci95_low = sorted[j - 1];
  s.ci95_high = sorted[sorted.size() - j];
}

/// Returns twice the rank of each value, from 2 on. Equal values share the mean of their ranks.
std::vector<std::size_t> doubled_ranks(const std::vector<double>& values) {
  std::vector<std::size_t> ranks;
  for (const double value : values) {
    std::size_t below = 0, equal = 0;
    for (const double other : values) {
      below += other < value;
      equal += other == value;
    }
    ranks.push_back(2 * below + equal + 1);
  }
  return ranks;
}

/// Returns the number of choices of `chosen` ranks for each sum.
std::vector<double> count_sums(const std::vector<std::size_t>& ranks, std::size_t chosen) {
  const std::size_t all = std::accumulate(ranks.begin(), ranks.end(), std::size_t{0});
  std::vector<std::vector<double>> counts(chosen + 1, std::vector<double>(all + 1));
  counts[0][0] = 1;
  for (const std::size_t rank : ranks)
    for (std::size_t k = chosen; k > 0; --k)
      for (std::size_t sum = all; sum >= rank; --sum) counts[k][sum] += counts[k - 1][sum - rank];
  return counts[chosen];
}

std::vector<double> scaled(std::vector<double> values, double factor) {
  for (double& value : values) value *= factor;
  return values;
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
  set_interval(s, values);
  for (double& value : values) value = std::abs(value - s.median);
  std::sort(values.begin(), values.end());
  s.mad = percentile(values, 0.5);
  s.outliers = std::count_if(values.begin(), values.end(),
                             [&](double distance) { return distance > 5 * 1.4826 * s.mad; });
  return s;
}

double median(std::vector<double> values) { return statistics_of(std::move(values)).median; }

double rank_sum_test(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty() || b.empty()) return 1;
  std::vector<double> both = a;
  both.insert(both.end(), b.begin(), b.end());
  const std::vector<std::size_t> ranks = doubled_ranks(both);
  const auto seen =
      std::accumulate(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(a.size()), 0.0);
  const double expected = static_cast<double>(a.size()) * static_cast<double>(both.size() + 1);
  const auto pairs = static_cast<double>(a.size() * b.size());
  if (pairs > 2500) {
    const double deviation = 2 * std::sqrt(pairs * static_cast<double>(both.size() + 1) / 12);
    return std::erfc(std::abs(seen - expected) / deviation / std::sqrt(2.0));
  }
  const std::vector<double> counts = count_sums(ranks, a.size());
  double as_far = 0, all = 0;
  for (std::size_t sum = 0; sum < counts.size(); ++sum) {
    all += counts[sum];
    if (std::abs(static_cast<double>(sum) - expected) >= std::abs(seen - expected))
      as_far += counts[sum];
  }
  return as_far / all;
}

Size fewest_values(double level) {
  // There are (2n over n) ways to divide 2n values equally. In two of them the ranks differ most.
  Size n = 1;
  for (double choices = 2; 2 / choices > level; ++n)
    choices *= static_cast<double>(2 * (2 * n + 1)) / static_cast<double>(n + 1);
  return n;
}

std::vector<double> holm(const std::vector<double>& probabilities) {
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    return probabilities[i] < probabilities[j];
  });
  std::vector<double> corrected(probabilities.size());
  double largest = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    largest = std::max(largest, static_cast<double>(order.size() - k) * probabilities[order[k]]);
    corrected[order[k]] = std::min(1.0, largest);
  }
  return corrected;
}

double typical_ratio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (const double from : a)
    for (const double to : b) ratios.push_back(to / from);
  return median(std::move(ratios));
}

double detectable_ratio(const std::vector<double>& a, const std::vector<double>& b, double level) {
  // Only the order of the values counts, so the result changes at these factors only.
  const std::vector<double> aligned = scaled(b, 1 / typical_ratio(a, b));
  std::vector<double> factors;
  for (const double from : a)
    for (const double to : aligned) factors.push_back(from / to);
  std::sort(factors.begin(), factors.end());
  const auto found = std::partition_point(factors.begin(), factors.end(), [&](double factor) {
    return factor < 1 - 1e-9 || rank_sum_test(a, scaled(aligned, factor * (1 + 1e-12))) > level;
  });
  return found == factors.end() ? std::numeric_limits<double>::infinity() : *found;
}

}  // namespace tessera::bench
