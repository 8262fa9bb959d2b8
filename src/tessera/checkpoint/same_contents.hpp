// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/comm/communicator.hpp>

namespace tessera {

/// Throws the same Error (usage) on every rank if a rank reads another file of this name than rank
/// 0, as on nodes with disks of their own. Compares the size and at most 16 runs of 64 KiB, spread
/// evenly. Collective.
void check_same_contents(const std::string& path, const Communicator& ranks);

}  // namespace tessera
