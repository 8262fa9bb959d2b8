// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/comm/communicator.hpp>

namespace tessera {

/// Writes a small HDF5 file from all ranks and removes it, so that a directory that cannot hold
/// checkpoints is rejected before training. Throws ConfigError for checkpoint.directory on all
/// ranks. Collective.
void try_saving(const std::string& directory, const Communicator& ranks);

}  // namespace tessera
