// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <map>

#include "measure/machine_parts.hpp"
#include "measure/machine_speed.hpp"
#include "measure/statistics.hpp"

namespace tessera::bench {

Machine typical_machine(const std::vector<Machine>& measured) {
  const auto typical = [&](const auto& number_of) {
    std::vector<double> numbers;
    std::transform(measured.begin(), measured.end(), std::back_inserter(numbers), number_of);
    return median(numbers);
  };
  Machine machine = measured.front();
  for (auto& rate : machine.flops_per_second)
    rate.second =
        typical([&](const Machine& each) { return each.flops_per_second.at(rate.first); });
  for (auto& efficiency : machine.side_efficiency)
    efficiency.second =
        typical([&](const Machine& each) { return each.side_efficiency.at(efficiency.first); });
  for (double Machine::*number : measured_numbers)
    machine.*number = typical([&](const Machine& each) { return each.*number; });
  for (std::size_t l = 0; l < machine.network.size(); ++l)
    for (double NetworkLevel::*number : measured_link_numbers)
      machine.network[l].*number =
          typical([&](const Machine& each) { return each.network[l].*number; });
  std::map<Size, std::vector<double>> rates;
  for (const Machine& each : measured)
    for (const CacheLevel& cache : each.caches)
      rates[cache.bytes].push_back(cache.bytes_per_second);
  machine.caches.clear();
  for (const auto& [bytes, of_cache] : rates)
    if (2 * of_cache.size() > measured.size()) machine.caches.push_back({bytes, median(of_cache)});
  return machine;
}

}  // namespace tessera::bench
