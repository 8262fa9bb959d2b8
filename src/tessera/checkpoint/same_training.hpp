// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/checkpoint/training_state.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/config/config.hpp>

namespace tessera {

/// Reads the state of a checkpoint from which a training with this configuration can resume. Model,
/// data, global batch, loss, kind of optimizer and [numerics] must be the same. Mesh, strategy,
/// precision, rates and paths of data may differ. Throws the same Error (usage) on every rank, with
/// the first key or the data that differ, or if ranks read different files. Collective.
TrainingState state_to_resume(const std::string& path, const Communicator& ranks,
                              const Config& config);

}  // namespace tessera
