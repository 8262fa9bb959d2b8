// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/comm/communicator.hpp>
#include <tessera/config/config.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/nn/models/model_spec.hpp>

namespace tessera {

/// Throws the same ConfigError on every rank if a rank has another configuration than rank 0. It
/// names the first key that differs on the lowest such rank. Collective.
void check_same_on_all_ranks(const Communicator& world, const Config& config);

/// Loads the configuration of a launch and resolves it. Throws the same Error on every rank, also
/// if only one node lacks the file. Collective.
Config agreed_config(const Communicator& world, const ConfigSource& source);

/// Returns the nodes of a launch with this configuration; for CommOptions::fake those that it asks
/// for. Collective.
Topology topology_of(const Communicator& world, const Config& config);

/// Throws ConfigError for `key` if the value is not the same on all ranks. Collective.
void check_same_everywhere(const Communicator& world, const char* key, Size value);

/// Returns the sample_checksums() of the data. Throws ConfigError on all ranks if a rank reads
/// other samples than rank 0. Collective.
std::string agreed_checksums(const Communicator& world, const DataConfig& data,
                             const ModelSpec& model);

}  // namespace tessera
