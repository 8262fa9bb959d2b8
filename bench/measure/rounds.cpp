// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "measure/statistics.hpp"

namespace tessera::bench {
namespace {

/// Returns the two-sided 95 % quantile of Student's distribution.
double student(std::size_t degrees) {
  constexpr std::array quantiles{12.706, 4.303, 3.182, 2.776, 2.571,
                                 2.447,  2.365, 2.306, 2.262, 2.228};
  return degrees <= quantiles.size() ? quantiles[degrees - 1] : quantiles.back();
}

constexpr std::array shares{1.0, 0.5, 0.0};

/// Rounds by launch and by their number in it.
using ByRound = std::map<std::pair<std::string, Size>, Round>;
ByRound by_round(const std::vector<Round>& rounds) {
  ByRound numbered;
  std::map<std::string, Size> numbers;
  for (const Round& round : rounds) numbered[{round.launch, numbers[round.launch]++}] = round;
  return numbered;
}

/// Returns the MAD relative to the median.
double scatter_of(const std::vector<double>& values) {
  const Statistics s = statistics_of(values);
  return s.mad / s.median;
}

/// Returns the median of `value` over the rounds of each launch.
template <class Value>
std::map<std::string, double> medians_of(const std::vector<Round>& rounds, const Value& value) {
  std::map<std::string, std::vector<double>> launches;
  for (const Round& round : rounds) launches[round.launch].push_back(value(round));
  std::map<std::string, double> medians;
  for (auto& [launch, values] : launches) medians[launch] = median(std::move(values));
  return medians;
}

/// Returns the ratios of rounds that both have, with a share corrected to the typical speed of the
/// machine.
std::vector<double> ratios_of(const std::vector<Round>& base, const std::vector<Round>& other,
                              std::optional<double> share) {
  const auto machine = [&](const Round& round) {
    return share ? machine_seconds(round.machine, *share) : 1;
  };
  const auto base_machine = medians_of(base, machine), other_machine = medians_of(other, machine);
  const ByRound from = by_round(base);
  std::vector<double> ratios;
  for (const auto& [key, round] : by_round(other)) {
    const auto found = from.find(key);
    if (found == from.end()) continue;
    const auto level = [&](const Round& one, const auto& medians) {
      return one.seconds * medians.at(one.launch) / machine(one);
    };
    ratios.push_back(level(round, other_machine) / level(found->second, base_machine));
  }
  return ratios;
}

/// Returns the number of rounds of each launch.
std::map<std::string, Size> rounds_by_launch(const std::vector<Round>& rounds) {
  std::map<std::string, Size> numbers;
  for (const Round& round : rounds) ++numbers[round.launch];
  return numbers;
}

/// Returns the rounds of whole launches. The median of a launch that was cut short scatters more
/// than theirs, so it must not count as one of them.
std::vector<Round> of_whole_launches(std::vector<Round> rounds) {
  const auto numbers = rounds_by_launch(rounds);
  Size most = 0;
  for (const auto& [launch, number] : numbers) most = std::max(most, number);
  std::erase_if(rounds, [&](const Round& round) { return numbers.at(round.launch) < most; });
  return rounds;
}

/// Widens the interval to Student's interval of the geometric mean of the medians of whole
/// launches.
void widen_for_launches(Statistics& s, const std::vector<Round>& rounds) {
  const auto launches =
      medians_of(of_whole_launches(rounds), [](const Round& round) { return round.seconds; });
  const auto n = static_cast<double>(launches.size());
  if (launches.size() < 2 || !s.ci95_low) return;
  double mean = 0, square = 0;
  for (const auto& [name, seconds] : launches) mean += std::log(seconds) / n;
  for (const auto& [name, seconds] : launches)
    square += std::pow(std::log(seconds) - mean, 2) / (n - 1);
  const double half = student(launches.size() - 1) * std::sqrt(square / n);
  s.ci95_low = std::min(*s.ci95_low, std::exp(mean - half));
  s.ci95_high = std::max(*s.ci95_high, std::exp(mean + half));
}

/// Removes an interval that says nothing, and sets why there is none.
void judge_interval(Statistics& s, const std::vector<Round>& rounds) {
  if (!s.ci95_low) {
    s.ci95_problem =
        fmt::format("{} of the {} rounds that an interval needs", rounds.size(), enough_rounds);
    return;
  }
  if (*s.ci95_high <= widest_interval * *s.ci95_low) return;
  s.ci95_problem =
      fmt::format("the ends of the interval differ by more than a factor of {:g}", widest_interval);
  s.ci95_low.reset();
  s.ci95_high.reset();
}

}  // namespace

LaunchCounts count_launches(const std::vector<Round>& rounds) {
  const auto all = std::ssize(rounds_by_launch(rounds));
  const auto whole = std::ssize(rounds_by_launch(of_whole_launches(rounds)));
  return {whole, all - whole};
}

double machine_seconds(const MachineSpeed& machine, double share) {
  return std::pow(machine.product_seconds, share) * std::pow(machine.memory_seconds, 1 - share);
}

std::vector<double> machine_free(const std::vector<Round>& rounds, double share) {
  std::vector<double> values;
  for (const Round& round : rounds)
    values.push_back(round.seconds / machine_seconds(round.machine, share));
  return values;
}

double best_share(const std::vector<std::vector<Round>>& sets) {
  const auto scatter = [&](double share) {
    double sum = 0;
    for (const std::vector<Round>& rounds : sets) sum += scatter_of(machine_free(rounds, share));
    return sum;
  };
  return *std::min_element(shares.begin(), shares.end(),
                           [&](double a, double b) { return scatter(a) < scatter(b); });
}

Statistics statistics_of(const std::vector<Round>& rounds, const std::vector<double>& steps) {
  std::vector<double> medians;
  for (const Round& round : rounds) medians.push_back(round.seconds);
  Statistics s = statistics_of(steps);
  const Statistics between = statistics_of(medians);
  s.median = between.median;
  s.ci95_low = between.ci95_low;
  s.ci95_high = between.ci95_high;
  widen_for_launches(s, rounds);
  judge_interval(s, rounds);
  return s;
}

Statistics paired_ratio(const std::vector<Round>& base, const std::vector<Round>& other) {
  std::vector<double> best = ratios_of(base, other, std::nullopt);
  if (best.empty()) return {};
  for (const double share : shares) {
    std::vector<double> ratios = ratios_of(base, other, share);
    if (scatter_of(ratios) < scatter_of(best)) best = std::move(ratios);
  }
  return statistics_of(std::move(best));
}

double drift_of(const std::vector<Round>& rounds) {
  std::vector<double> slowness, speed;
  for (const Round& round : rounds) {
    slowness.push_back(machine_seconds(round.machine));
    speed.push_back(1 / slowness.back());
  }
  return statistics_of(slowness).p95 * statistics_of(speed).p95;
}

double resolution_of(const std::vector<Round>& rounds) {
  const std::vector<double> values = machine_free(rounds, best_share({rounds}));
  return std::max(1 + smallest_effect, detectable_ratio(values, values, verdict_level));
}

}  // namespace tessera::bench
