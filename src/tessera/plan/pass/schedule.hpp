// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/plan/layout/units.hpp>
#include <tessera/plan/pass/action.hpp>
#include <tessera/plan/pass/pass.hpp>
#include <tessera/plan/pipeline/pipeline_actions.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// What a stage does: lists of actions.
struct StageSchedule {
  /// One step: the passes of its microbatches, with gathers before a bucket is used, reductions
  /// behind its last backward, and messages; then clipping, update and what follows it.
  std::vector<Action> step;
  Repetition repeated;           ///< of the step
  std::vector<PassSpan> passes;  ///< in the list of the step
  /// The forward passes of a batch, with their losses, and nothing else.
  std::vector<Action> evaluation;
  Repetition evaluation_repeated;
};

/// The passes that a plan lists. Without stages, all microbatches but the last go through the same
/// actions: two microbatches stand for all of them, and a Repetition says how often.
PipelineShape listed_passes(const PlanInput& input);

/// `stage`: coordinate along `pipeline`; `list`: its part of what check_pipeline() has accepted for
/// listed_passes().
StageSchedule make_schedule(const PlanInput& input, const PassPlan& pass,
                            const ParameterLayout& parameters, Size stage,
                            const std::vector<PipelineAction>& list);

}  // namespace tessera
