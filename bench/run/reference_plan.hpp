// SPDX-License-Identifier: Apache-2.0
// Plans of references.
#pragma once

#include <string>

#include <tessera/config/config.hpp>
#include <tessera/predict/machine.hpp>

#include "results/case_result.hpp"
#include "study/study.hpp"

namespace tessera::bench {

/// The training that gives the reference losses of a configuration, on the first ranks of a
/// communicator with one mesh axis: data=1, or fsdp.
struct ReferencePlan {
  std::string name;
  Config config;
  Size ranks = 1;
};

/// Returns the name of the reference of a configuration, "reference-<hash>". It is the same for all
/// cases that train in the same way.
std::string reference_name(const Config& config);

/// Plans the reference on one rank, in as few microbatches as the memory limit allows. If it does
/// not fit, the smallest mesh that fits computes it: fsdp over at most min(rules.ranks, available,
/// batch) ranks. Throws Error (out_of_memory) if nothing fits into the memory of what executes it.
ReferencePlan plan_reference(const Config& config, const VerifyRules& rules, const Limits& limits,
                             Size available, const DeviceTraits& traits = traits_of_this_device());

/// Returns the number of steps of a round, for steps of this length: enough for block_seconds, and
/// in all rounds together between the study's steps and max_steps.
Size block_steps(const MeasureRules& rules, double step_seconds);

}  // namespace tessera::bench
