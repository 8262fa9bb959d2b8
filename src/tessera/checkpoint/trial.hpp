// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/comm/communicator.hpp>

namespace tessera {

/// Writes a small file to a directory as a save does, and removes it, so that a file system that
/// cannot hold checkpoints is known before training. `async`: with plain writes of each rank.
/// Collective; throws ConfigError for checkpoint.directory on all ranks.
void try_saving(const std::string& directory, bool async, const Communicator& ranks);

}  // namespace tessera
