// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/trace/region_timer.hpp>

namespace tessera {

/// Returns the ranks' traces in the format of chrome://tracing and Perfetto, in microseconds: a row
/// per rank with its regions and its calls, and the wait for other ranks before a call as "idle". A
/// call has its axis, step and tensor as arguments; the event that starts it also has its payload
/// bytes. Counters show the memory of a rank: planned, planned to be in use, and measured.
/// `first_step`: number of the first traced step;
/// `first_rank`: that of the first trace.
nlohmann::json chrome_trace(const std::vector<RankTrace>& ranks, Size first_step = 1,
                            Size first_rank = 0);

}  // namespace tessera
