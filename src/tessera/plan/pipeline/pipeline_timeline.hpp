// SPDX-License-Identifier: Apache-2.0
// How long a pipeline's schedule takes, and who waits when.
#pragma once

#include <string>
#include <vector>

#include <tessera/plan/pipeline/pipeline_actions.hpp>

namespace tessera {

/// Of one microbatch on one stage, all its chunks together; in any unit.
struct PipelineTimes {
  double forward = 1;
  double input_gradients = 1;
  double weight_gradients = 1;
  double message = 0;  ///< from the end of a pass until its output is there on another stage
};

struct TimedPass {
  StagePass pass{};
  double begin = 0;
  double end = 0;
};

struct PipelineTimeline {
  std::vector<std::vector<TimedPass>> stages;
  double makespan = 0;
  /// Part of the makespan in which a stage waits, the mean over stages. Without messages it is
  /// (p - 1) / (m + p - 1) for gpipe and 1f1b, (p - 1) / (v m + p - 1) for interleaved. For
  /// zero_bubble with m >= p, b / (m (f + i + w) + b) where b = (p - 1) (f + i - w), with f, i, w
  /// for the times above and i not less than w (Qi et al. 2024, section 2.3).
  double bubble = 0;
};

/// Each stage begins a pass as soon as it has done the one before and the input is there. The lists
/// must be valid.
PipelineTimeline time_passes(const PassLists& passes, const PipelineShape& shape,
                             const PipelineTimes& times);

/// The same with a time for each pass of each list. Messages take none.
PipelineTimeline replay_passes(const PassLists& passes, const PipelineShape& shape,
                               const std::vector<std::vector<double>>& times);

/// A line for each stage, a column for each unit of time: the microbatch of each pass, in capitals
/// what it is: "F0 F1 .. B0 B0". Times are rounded to units. Lines of more than `columns` are
/// continued below, up to four times.
std::string draw(const PipelineTimeline& timeline, const PipelineShape& shape, Size columns = 100);

}  // namespace tessera
