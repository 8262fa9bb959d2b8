// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/config/config.hpp>

namespace tessera {

/// The time that --until names, in seconds since 1970: a local date and time,
/// "2026-11-24T06:00:00", or these seconds, as SLURM_JOB_END_TIME has them; none for "". Throws
/// ConfigError for any other text, and without a directory for the checkpoint.
std::optional<std::int64_t> time_to_stop(const std::string& until, const Config& config);

/// Seconds since 1970 now. The clock of the standard library counts nanoseconds, which end in 2262.
std::int64_t seconds_now();

}  // namespace tessera
