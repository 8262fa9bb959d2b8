// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/site.hpp>
#include <tessera/base/types.hpp>
#include <tessera/comm/communicator.hpp>

namespace tessera {

/// The node of each rank, named by its lowest rank. A node is what MPI says shares memory.
/// Collective.
std::vector<Size> node_of_ranks(const Communicator& ranks, Site site = Site::current());

}  // namespace tessera
