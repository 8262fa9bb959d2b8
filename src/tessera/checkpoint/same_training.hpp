// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/checkpoint/training_state.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/config/config.hpp>

namespace tessera {

/// The state of a checkpoint, if a training with this configuration can go on from it: model, data,
/// global batch and kind of optimizer must be the same. The rest may change: mesh, strategy,
/// precision, rates, and where the data are. Collective; throws the same Error on every rank, with
/// the first key that differs, or with the samples.
TrainingState state_to_resume(const std::string& path, const Communicator& ranks,
                              const Config& config);

/// The value of TrainingState::data for this configuration: checksums of samples as JSON.
std::string samples_text(const Config& config);

}  // namespace tessera
