// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/site.hpp>
#include <tessera/base/types.hpp>
#include <tessera/comm/communicator.hpp>

namespace tessera {

/// Returns the node of each rank, as the lowest rank on that node. Ranks are on one node if MPI
/// reports that they share memory. Collective.
std::vector<Size> node_of_ranks(const Communicator& ranks, Site site = Site::current());

}  // namespace tessera
