// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/app/commands.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/config/config.hpp>

namespace tessera {

/// Returns the checkpoint to resume from, or "" to start anew. Rank 0 looks for it. Throws the same
/// Error on every rank if --resume finds none, and for a file from which the run cannot resume or
/// start. Collective.
std::string checkpoint_to_resume(const Communicator& world, const Config& config,
                                 const TrainOptions& options);

}  // namespace tessera
