// SPDX-License-Identifier: Apache-2.0
// The time of a pipeline's schedule and the waiting of its stages.
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

struct TimedPass {
  StagePass pass{};
  double begin = 0;
  double end = 0;
};

struct PipelineTimeline {
  std::vector<std::vector<TimedPass>> stages;
  double makespan = 0;
  /// The fraction of the makespan in which a stage waits, averaged over stages. Without messages it
  /// is (p - 1) / (m + p - 1) for gpipe and 1f1b, and (p - 1) / (v m + p - 1) for interleaved
  /// (Narayanan et al. 2021). For zero_bubble with m >= p it is b / (m (f + i + w) + b) with b = (p
  /// - 1) (f + i - w) and i >= w (Qi et al. 2024, section 2.3). f, i, w are the times of forward,
  /// input gradients and weight gradients.
  double bubble = 0;
};

/// Returns the times of the passes. Each stage begins a pass when its previous pass has ended and
/// the input is there. The lists must be valid.
PipelineTimeline time_passes(const PassLists& passes, const PipelineShape& shape,
                             const PipelineTimes& times);

/// Draws a line per stage and a column per unit of time, such as "F0 F1 .. B0 B0". Times are
/// rounded to units. Lines longer than `columns` are continued below, up to four times.
std::string draw(const PipelineTimeline& timeline, const PipelineShape& shape, Size columns = 100);

}  // namespace tessera
