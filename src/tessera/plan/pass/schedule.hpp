// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/plan/layout/units.hpp>
#include <tessera/plan/pass/action.hpp>
#include <tessera/plan/pass/pass.hpp>
#include <tessera/plan/pipeline/pipeline_actions.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// The lists of actions of a stage.
struct StageSchedule {
  /// One step: the passes of its microbatches with gathers before a bucket's use, reductions after
  /// its last backward pass and messages; then clipping, update and gathers of updated parameters.
  std::vector<Action> step;
  Repetition repeated;           ///< repeated part of the step
  std::vector<PassSpan> passes;  ///< positions of the pipeline passes in the step
  /// The forward passes and losses of a batch.
  std::vector<Action> evaluation;
  Repetition evaluation_repeated;
};

/// Returns the shape of the listed passes. Without stages, all microbatches but the last execute
/// the same actions: two microbatches are listed, and a Repetition gives the number.
PipelineShape listed_passes(const PlanInput& input);

/// Makes the schedule of a stage. `stage` is the coordinate along `pipeline`. `list` is the stage's
/// list of the lists that check_pipeline() accepted for listed_passes().
StageSchedule make_schedule(const PlanInput& input, const PassPlan& pass,
                            const ParameterLayout& parameters, Size stage,
                            const std::vector<PipelineAction>& list);

}  // namespace tessera
