// SPDX-License-Identifier: Apache-2.0
// Simulates a pipeline: whether its stages can deadlock, the times at which passes begin and end,
// and the time that stages wait.
#pragma once

#include <string>
#include <vector>

#include <tessera/plan/pipeline/pipeline_actions.hpp>

namespace tessera {

/// Times of one microbatch on one stage, all its chunks together, in any unit.
struct PipelineTimes {
  double forward = 1;
  double input_gradients = 1;
  double weight_gradients = 1;
  double message = 0;  ///< from the end of a pass until its output arrives on another stage
};

/// A pass with the times at which it begins and ends, from the start of the step.
struct TimedPass {
  StagePass pass{};
  double begin = 0;
  double end = 0;
};

struct PipelineTimeline {
  std::vector<std::vector<TimedPass>> stages;
  double makespan = 0;  ///< the end of the last pass
  /// The fraction of the makespan in which a stage waits, averaged over stages. SCHEDULES.md has
  /// the closed forms for messages that take no time.
  double bubble = 0;
};

/// Simulates the execution of the lists. Each stage begins a pass when its previous pass has ended
/// and the input has arrived. A send ends when the matching receive has started, as MPI permits.
/// Throws Error (wrong_result), which names stage and pass, if a pass is missing, repeated or out
/// of order, or if the stages deadlock.
PipelineTimeline simulate_pipeline(const ActionLists& lists, const PipelineShape& shape,
                                   const PipelineTimes& times = {});

/// Returns the bubble with more microbatches (`shape`) than `timeline` has (`listed`).
double bubble_of(const PipelineTimeline& timeline, const PipelineShape& listed,
                 const PipelineShape& shape);

/// Draws a line per stage, such as "F0 F1 .. B0 B0", with a column per unit of time: a forward pass
/// of one chunk at the default times. Times are rounded to units. Lines longer than `columns`
/// characters are continued below, at most four times; the rest is left out.
std::string draw(const PipelineTimeline& timeline, const PipelineShape& shape, Size columns = 100);

}  // namespace tessera
