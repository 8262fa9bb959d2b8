// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/plan/layout/units.hpp>
#include <tessera/plan/pass/action.hpp>
#include <tessera/plan/pass/pass.hpp>
#include <tessera/plan/pipeline/pipeline_actions.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// The actions of a stage, in order, the same on each of its ranks.
struct StageSchedule {
  /// One step: the passes of the microbatches and the messages between stages, a gather before a
  /// bucket is used and a reduction after its last backward action; then clipping, the update and
  /// gathers of updated parameters.
  std::vector<ListedAction> actions;
  Repetition repeated;           ///< the part of `actions` that microbatches repeat
  std::vector<PassSpan> passes;  ///< positions of the pipeline passes in `actions`
  /// The forward passes and losses of a batch, without gradients.
  std::vector<ListedAction> evaluation;
  Repetition evaluation_repeated;  ///< repeated part of `evaluation`
};

/// Up to this number, microbatches of a pipeline, and repetitions in a document, are listed one by
/// one. Beyond it, the first ones stand for all.
inline constexpr Size most_listed = 64;

/// Returns the shape of the pipeline whose passes a schedule lists. Without an axis `pipeline`, all
/// microbatches but the last execute the same actions, so at most two are listed: the first, with a
/// Repetition, and the last. With one, the steady state is a Repetition if there are many
/// microbatches and period_of() is not 0.
PipelineShape listed_passes(const PlanInput& input);

/// Makes the schedule of stage number `stage`. `list` holds the passes and messages of this stage
/// in the shape of listed_passes(). simulate_pipeline() must have accepted the lists of all stages.
StageSchedule make_schedule(const PlanInput& input, const PassPlan& pass,
                            const ParameterLayout& parameters, Size stage,
                            const std::vector<PipelineAction>& list);

}  // namespace tessera
