// SPDX-License-Identifier: Apache-2.0
// The parts of measure_machine(). All are collective over `ranks`.
#pragma once

#include <functional>
#include <vector>

#include <tessera/comm/communicator.hpp>
#include <tessera/predict/machine.hpp>

namespace tessera::bench {

/// Returns the median of the seconds that `work` takes on the slowest rank, of so many times.
double typical_seconds(const Communicator& ranks, Size times, const std::function<void()>& work);

/// Returns the bytes per second of to += from / 2, which moves three times the bytes of a View,
/// with Views of `n` elements. Sweeps of short ones are repeated.
double memory_rate(const Communicator& ranks, Size n);

/// Measures half_rate_side, block_byte_seconds and product_overlap of a machine with
/// kernel_seconds.
void measure_products(const Communicator& ranks, Machine& machine);

/// Returns the levels of the network between the ranks, none for a single rank.
std::vector<NetworkLevel> measure_network(const Communicator& ranks,
                                          const std::vector<Size>& node_of_rank);

/// Returns the part of the shorter of a call and a product that is hidden if the call starts before
/// the product and finishes after it.
double measure_overlap(const Communicator& ranks);

}  // namespace tessera::bench
