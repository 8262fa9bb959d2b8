// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include <tessera/comm/communicator.hpp>

namespace tessera::bench {

/// Runs `work` `warm_up` times untimed, then `times` times, each after a barrier. Returns the
/// seconds of each run on this rank. Collective.
std::vector<double> repeat(const Communicator& ranks, Size warm_up, Size times,
                           const std::function<void()>& work);

/// Returns the seconds of the slowest rank for each repetition. Collective.
std::vector<double> slowest(const Communicator& ranks, const std::vector<double>& mine);

}  // namespace tessera::bench
