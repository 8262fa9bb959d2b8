// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/plan/action.hpp>
#include <tessera/plan/pass.hpp>
#include <tessera/plan/pipeline_actions.hpp>
#include <tessera/plan/plan_input.hpp>
#include <tessera/plan/units.hpp>

namespace tessera {

/// What a stage does: lists of actions.
struct StageSchedule {
  /// One step: the passes of its microbatches, with gathers before a bucket is used, reductions
  /// behind its last backward, and messages; then clipping, update and what follows it.
  std::vector<Action> step;
  std::vector<PassSpan> passes;  ///< of the step
  /// The forward passes of a batch, with their losses, and nothing else.
  std::vector<Action> evaluation;
};

/// `stage`: coordinate along `pipeline`; `list`: its part of what check_pipeline() has accepted.
StageSchedule make_schedule(const PlanInput& input, const PassPlan& pass,
                            const ParameterLayout& parameters, Size stage,
                            const std::vector<PipelineAction>& list);

}  // namespace tessera
