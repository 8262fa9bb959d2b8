// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/timer.hpp>

#include "run/last_word.hpp"
#include "run/launch.hpp"
#include "run/selection.hpp"

namespace tessera::bench {

/// Everything that an attempt at a case needs.
struct AttemptContext {
  const Study& study;
  const Communicator& world;
  const LaunchState& launch;
  const ResultsDirectory& results;
  LastWord& last_word;
  const RunOptions& options;
};

/// Verifies a case against its reference (as from find_reference), measures it, and fills in its
/// result as it goes: what an exception leaves behind is what had been found by then. `clock` runs
/// since the attempt began. Sets the status ok or invalid; other ends are exceptions. Returns the
/// step times. Collective over the ranks of the case; results are whole on rank 0.
std::vector<double> run_case(const Case& point, const AttemptContext& context,
                             const nlohmann::json& reference, const Timer& clock,
                             nlohmann::json& result);

}  // namespace tessera::bench
