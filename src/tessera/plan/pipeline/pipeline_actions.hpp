// SPDX-License-Identifier: Apache-2.0
// The passes of a pipeline with the messages between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <tessera/plan/pipeline/pipeline_schedule.hpp>

namespace tessera {

/// A part of the work of a stage on one pass. The input of a forward pass is the output of the
/// previous chunk of layers; the input of a backward pass is the gradient from the next chunk.
enum class PipelineStep : std::uint8_t {
  start_receive,   ///< starts to receive the pass's input
  finish_receive,  ///< waits for the input
  compute,
  start_send,   ///< starts to send the pass's output
  finish_send,  ///< waits until the memory of the output may be reused
};
template <>
inline constexpr std::array<std::string_view, 5> names_of<PipelineStep>{
    "start_receive", "finish_receive", "compute", "start_send", "finish_send"};

/// One entry of a stage's list of computations and messages.
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
  auto operator<=>(const PlacedPass&) const = default;
};

/// Return the pass whose output `of` reads, and the pass that reads the output of `of`; none at the
/// ends of the pipeline and for weight_gradients. Either may be on the same stage.
std::optional<PlacedPass> producer_of(const PlacedPass& of, const PipelineShape& shape);
std::optional<PlacedPass> consumer_of(const PlacedPass& of, const PipelineShape& shape);

/// Returns the pass that must end before a pass can begin on its stage: its producer, for gradients
/// of the last chunk the forward pass, and for weight_gradients the input_gradients. None for
/// forward passes of the first chunk.
std::optional<PlacedPass> needed_by(const PlacedPass& pass, const PipelineShape& shape);

/// Returns by stage when its passes end, if each takes one unit, `backward` two, and messages take
/// no time. Passes that never begin, because stages wait for each other, are missing.
std::vector<std::vector<Size>> pass_ends(const PassLists& passes, const PipelineShape& shape);

/// Adds messages to the passes of each stage, in which no stage waits forever (pass_ends()). A
/// receive is started one pass before the pass that needs it, or earlier if its message is sent
/// earlier; a send is finished one pass later. So messages travel while a stage computes, and a
/// step takes no longer where sends wait for their receives.
ActionLists add_messages(const PassLists& passes, const PipelineShape& shape);

/// Executes the lists of all stages, each from its position in `next` on, until no stage can go on.
/// `execute(stage, entry)` returns false, without effect, if the stage has to wait for another one.
template <class Lists, class Execute>
void advance_stages(const Lists& lists, std::vector<std::size_t>& next, const Execute& execute) {
  for (bool moves = true; moves;) {
    moves = false;
    for (std::size_t s = 0; s < lists.size(); ++s)
      for (; next[s] < lists[s].size() && execute(s, lists[s][next[s]]); ++next[s]) moves = true;
  }
}

}  // namespace tessera
