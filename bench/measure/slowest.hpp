// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include <tessera/comm/communicator.hpp>

namespace tessera::bench {

/// Seconds of `work` on this rank, each time behind a barrier, after some times that do not count.
/// Collective.
std::vector<double> repeat(const Communicator& ranks, Size warm_up, Size times,
                           const std::function<void()>& work);

/// For each repetition the seconds of the slowest rank. Collective.
std::vector<double> slowest(const Communicator& ranks, const std::vector<double>& mine);

}  // namespace tessera::bench
