// SPDX-License-Identifier: Apache-2.0
// The forward half of a pass: outputs, where they lie, and what is kept of them for backward.
#pragma once

#include <optional>
#include <vector>

#include <tessera/plan/pass/pass_tensors.hpp>

namespace tessera::detail {

class ForwardPass : protected PassTensors {
 protected:
  ForwardPass(const PlanInput& input, const std::vector<Layout>& layouts)
      : PassTensors(input), layouts_(layouts) {}

  /// batch/x and batch/y.
  void add_batch();
  /// Inputs, layers and outputs of a chunk, and behind the last layer the loss: the gradient of the
  /// prediction, else no_slot.
  SlotId forward_chunk(Range layers);
  /// How the loss reads the prediction and gives its gradient.
  Placement of_loss() const { return loss_placement(input_, layouts_); }
  /// From here on what is made is made for backward, and what it computes again is not there.
  void begin_backward(Range layers);

  /// The layers before `boundary` whose outputs those behind it read.
  std::vector<Size> crossing(Size boundary) const;
  /// Of the output of `producer`, or of its gradient, where it travels across `boundary`.
  Size tag_of(Size producer, Size boundary, bool gradient) const;

  /// The output of a layer as the layer has made it; computed again where it has not been kept.
  SlotId made(Size producer);
  /// What a layer keeps beside it.
  SlotId kept(Size layer);
  /// An input as forward has read it. One that was redistributed is made again, unless it was the
  /// last one.
  SlotId input_again(Size l, std::size_t i);

  const std::vector<Layout>& layouts_;

 private:
  Extent extent_of_x() const { return {input_.model.input_positions, input_.model.input_width}; }
  void shorten_x(Range layers);
  void find_segments(Range layers);
  void forget(Range layers);
  void compute_again(Size l);
  std::optional<Placement> first_reader(Size producer, Size boundary) const;
  Placement sent_placement(Size producer, Size boundary) const;
  std::vector<Placement> readers_of(Size producer) const;
  SlotId in_placement(Size producer, Placement needed);
  SlotId add_output(Size l, Placement along_model, SlotId in_memory_of = no_slot);
  SlotId copy_of(SlotId raw, Placement needed, SlotId in_memory_of = no_slot);
  SlotId replaced_input(Size l, const std::vector<SlotId>& inputs) const;
  void forward(Size l);
  SlotId loss();

  std::vector<SlotId> made_, kept_;          ///< by layer
  std::vector<std::vector<SlotId>> copies_;  ///< by layer: its output with other placements
  SlotId x_ = slot_of_x;                     ///< in the compute type
  std::vector<SlotId> copies_of_x_;
  SlotId last_copy_ = no_slot, last_input_copy_ = no_slot;
  static constexpr Size no_segment = -1;
  std::vector<Size> segment_of_;  ///< by layer of the chunk, where it is computed again
  SlotId first_of_backward_ = no_slot;
};

}  // namespace tessera::detail
