// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/trace/region_timer.hpp>

namespace tessera {

/// Returns the ranks' traces in the format of chrome://tracing and Perfetto, in microseconds: a row
/// per rank with its regions and its calls, each with its axis, and the wait for other ranks before
/// a call as "idle".
nlohmann::json chrome_trace(const std::vector<RankTrace>& ranks);

}  // namespace tessera
