// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/config/config.hpp>

namespace tessera {

/// Returns the time of --until in seconds since 1970, or none for "". `until`: a local date and
/// time, "2026-11-24T06:00:00", or seconds since 1970 as in SLURM_JOB_END_TIME. Throws ConfigError
/// for any other text, and without checkpoint.directory.
std::optional<std::int64_t> time_to_stop(const std::string& until, const Config& config);

/// Returns the current time in seconds since 1970. Clocks of std::chrono count nanoseconds and end
/// in 2262.
std::int64_t seconds_now();

}  // namespace tessera
