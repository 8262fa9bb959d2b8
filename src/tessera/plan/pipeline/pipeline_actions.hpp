// SPDX-License-Identifier: Apache-2.0
// The passes of a pipeline with the messages between them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tessera/plan/pipeline/pipeline_schedule.hpp>

namespace tessera {

/// What a stage does about a pass. Its input is what the chunk before has computed, or for a
/// backward pass the gradient that the chunk behind it has; its output goes the same way.
enum class PipelineStep : std::uint8_t {
  start_receive,   ///< the pass's input
  finish_receive,  ///< waits for it
  compute,
  start_send,   ///< the pass's output
  finish_send,  ///< waits until its memory may be used again
};
template <>
inline constexpr std::array<std::string_view, 5> names_of<PipelineStep>{
    "start_receive", "finish_receive", "compute", "start_send", "finish_send"};

struct PipelineAction {
  PipelineStep step = PipelineStep::compute;
  StagePass pass{};
  friend bool operator==(const PipelineAction&, const PipelineAction&) = default;
};
using ActionLists = std::vector<std::vector<PipelineAction>>;  ///< by stage

/// A pass on one stage.
struct PlacedPass {
  Size stage = 0;
  StagePass pass{};
  friend auto operator<=>(const PlacedPass&, const PlacedPass&) = default;
};

/// The pass whose output is the input of another one, or the one that reads its output; none at the
/// ends of the pipeline. It may be one of the same stage.
std::optional<PlacedPass> pass_before(const PlacedPass& of, const PipelineShape& shape);
std::optional<PlacedPass> pass_behind(const PlacedPass& of, const PipelineShape& shape);

/// A receive is posted before the pass ahead of the one that needs it, and a send has the whole
/// next pass to arrive, so that messages travel while a stage computes.
ActionLists add_messages(const PassLists& passes, const PipelineShape& shape);

/// Carries the lists out with sends that wait for the receive on the other stage, as MPI may do.
/// Throws Error (wrong_result) that names the stage and the pass where microbatches are missing,
/// done twice or before what they need, where messages do not meet, or where all stages wait.
void check_pipeline(const ActionLists& lists, const PipelineShape& shape);

}  // namespace tessera
