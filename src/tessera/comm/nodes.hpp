// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/site.hpp>
#include <tessera/base/types.hpp>
#include <tessera/comm/communicator.hpp>

namespace tessera {

/// How many of the ranks run on each node, in the order of each node's lowest rank. A node is what
/// MPI says shares memory. Collective.
std::vector<Size> ranks_by_node(const Communicator& ranks, Site site = Site::current());

}  // namespace tessera
