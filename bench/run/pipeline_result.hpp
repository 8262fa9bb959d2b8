// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/plan/plan.hpp>

#include "measure/instrument.hpp"

namespace tessera::bench {

/// What the plan says of a pipeline: null for one stage. `bubble`: of its schedule, where a
/// backward pass takes twice as long as a forward pass and messages take no time.
nlohmann::json pipeline_json(const Plan& plan);

/// When the first rank of each stage was in which pass of the first step of its trace, and when it
/// would have been if every pass had taken the mean time of its kind and messages none:
/// {"measured": [[["F0", begin, end], ...] of each stage], "ideal": ..., "measured_bubble": of this
/// step, "replayed_bubble": of the schedule with each pass as long as it took}, in seconds.
nlohmann::json timeline_json(const Plan& plan, const std::vector<RankTrace>& traces);

}  // namespace tessera::bench
