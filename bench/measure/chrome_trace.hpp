// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "measure/instrument.hpp"

namespace tessera::bench {

/// The ranks' traces in the format of chrome://tracing and Perfetto: one row per rank with its
/// regions, each collective with its axis, and, before it, the time that it waited for others as
/// "idle". Microseconds.
nlohmann::json chrome_trace(const std::vector<RankTrace>& ranks);

}  // namespace tessera::bench
