// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <tessera/app/commands.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/config/config.hpp>

namespace tessera {

/// The checkpoint that the options ask to go on from; empty: from the beginning. Rank 0 looks for
/// it. Collective; throws the same Error on every rank where there is none and one is asked for.
std::string checkpoint_to_resume(const Communicator& world, const Config& config,
                                 const TrainOptions& options);

/// The time that --until names: local, "2026-11-24T06:00:00", or seconds since 1970, as
/// SLURM_JOB_END_TIME has them; none for "". Throws ConfigError for another text, and without a
/// directory for the checkpoint.
std::optional<std::chrono::system_clock::time_point> time_to_stop(const std::string& until,
                                                                  const Config& config);

}  // namespace tessera
