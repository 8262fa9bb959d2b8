// SPDX-License-Identifier: Apache-2.0
// Plans of references, and predicted times of a study on a machine.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

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
                             Size available, const Target& target = this_target());

/// Returns the number of steps of a round, for steps of this length: enough for block_seconds, and
/// in all rounds together between the study's steps and max_steps.
Size block_steps(const MeasureRules& rules, double step_seconds);

/// Returns the seconds of a case without set-up, with steps of this length: verification,
/// instrumented steps, and warm-up and timed steps, as if every round set it up again.
double case_seconds(const Case& point, const Study& study, double step_seconds);

/// Returns the predicted seconds of a case's reference, without set-up, in a launch
/// with the ranks of the case, and adds it to `made`. Returns 0 if it was made before or if there
/// is none. Throws ConfigError if the machine has too few ranks.
double reference_seconds(const Case& point, const Study& study, const Machine& machine,
                         std::set<std::string>& made);

/// The machine that predicts cases, and the factor by which measured times may exceed predicted
/// ones.
struct TimeSource {
  Machine machine;
  double safety;
};

/// Returns the seconds that these cases need in one launch, without its start. Each case and each
/// of their references takes ten seconds of set-up plus `safety` times its predicted steps, but at
/// most limits.case_seconds. Without a source, it takes limits.case_seconds. Throws ConfigError if
/// the machine has too few ranks for a case.
double seconds_of(const std::vector<const Case*>& cases, const Study& study,
                  const std::optional<TimeSource>& source);

}  // namespace tessera::bench
