// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "measure/instrument.hpp"

namespace tessera::bench {

/// Returns the ranks' traces in the format of chrome://tracing and Perfetto, in microseconds: a row
/// per rank with its regions and its collectives, each with its axis, and the wait for other ranks
/// before it as "idle".
nlohmann::json chrome_trace(const std::vector<RankTrace>& ranks);

}  // namespace tessera::bench
