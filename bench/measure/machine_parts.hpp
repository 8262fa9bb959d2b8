// SPDX-License-Identifier: Apache-2.0
// The measurements that measure_machine() makes. All are collective over `ranks`.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include <tessera/comm/communicator.hpp>
#include <tessera/predict/machine.hpp>

namespace tessera::bench {

/// The numbers of a machine that are measured, besides rates of products and of caches.
inline constexpr std::array measured_numbers{&Machine::memory_bytes_per_second,
                                             &Machine::product_overlap, &Machine::kernel_seconds,
                                             &Machine::function_seconds, &Machine::overlap};
inline constexpr std::array measured_link_numbers{&NetworkLevel::latency_seconds,
                                                  &NetworkLevel::rendezvous_seconds,
                                                  &NetworkLevel::bytes_per_second};

/// Repeats `work` and returns the median of the seconds that it takes on the slowest rank.
double typical_seconds(const Communicator& ranks, Size times, const std::function<void()>& work);

/// Returns the bytes per second of `to += from / 2` on Views of `n` elements, which moves three
/// times the bytes of one View. Short sweeps are repeated.
double memory_rate(const Communicator& ranks, Size n);

/// Measures side_efficiency and product_overlap of a machine whose kernel_seconds is known.
void measure_products(const Communicator& ranks, Machine& machine);

/// Returns the levels of the network between the ranks, none for a single rank.
std::vector<NetworkLevel> measure_network(const Communicator& ranks,
                                          const std::vector<Size>& node_of_rank);

/// Starts a call, computes a product and waits for the call. Returns the fraction of the shorter of
/// the two that the other hides.
double measure_overlap(const Communicator& ranks);

}  // namespace tessera::bench
