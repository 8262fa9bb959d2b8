// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/comm/communicator.hpp>
#include <tessera/config/config.hpp>
#include <tessera/config/config_io.hpp>

namespace tessera {

/// Collective. Throws the same ConfigError on every rank unless all of them were given the same
/// configuration: files may differ between nodes, and ranks that plan different steps deadlock.
/// Names the first key of the lowest rank that differs from rank 0.
void check_same_on_all_ranks(const Communicator& world, const Config& config);

/// Collective. The configuration of a launch, resolved on its ranks and the same on all of them: a
/// file may be missing on one node only.
Config agreed_config(const Communicator& world, const ConfigSource& source);

/// Collective. The same for a value that ranks were given: throws ConfigError for `key` unless it
/// is the same on all of them.
void check_same_everywhere(const Communicator& world, const char* key, Size value);

}  // namespace tessera
