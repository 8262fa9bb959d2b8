// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/comm/communicator.hpp>

namespace tessera::bench {

/// For each repetition the seconds of the slowest rank. Collective.
std::vector<double> slowest(const Communicator& ranks, const std::vector<double>& mine);

}  // namespace tessera::bench
