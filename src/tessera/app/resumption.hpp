// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/app/commands.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/config/config.hpp>

namespace tessera {

/// The checkpoint that the options ask to go on from; empty: from the beginning. Rank 0 looks for
/// it. Collective; throws the same Error on every rank where there is none and one is asked for.
std::string checkpoint_to_resume(const Communicator& world, const Config& config,
                                 const TrainOptions& options);

}  // namespace tessera
