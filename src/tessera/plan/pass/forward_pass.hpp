// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <tessera/plan/pass/pass_tensors.hpp>

namespace tessera::detail {

/// Lowers the forward half of a pass: outputs of layers, their redistributions, and the values that
/// the backward half reads. Emits into `tensors`.
class ForwardPass {
 public:
  ForwardPass(const PlanInput& input, const std::vector<Layout>& layouts, PassTensors& tensors)
      : input_(input), layers_(input.model.layers), layouts_(layouts), tensors_(tensors) {}

  /// Adds the slots batch/x and batch/y.
  void add_batch();
  /// Lowers inputs, layers and outputs of a chunk. With the model's last layer, lowers the loss too
  /// and returns the gradient of the prediction; else returns no_slot.
  SlotId lower(Range layers);
  /// Begins the backward half of the same chunk. Drops the activations that are recomputed.
  void begin_backward(Range layers);

  /// Returns the placement of the prediction in the loss, and of its gradient.
  Placement of_loss() const { return loss_placement(input_, layouts_); }
  /// Returns the layers before `boundary` whose outputs later layers read.
  std::vector<Size> crossing(Size boundary) const;
  /// Returns the tag of a message with the output of `producer`, or its gradient, across
  /// `boundary`.
  Size tag_of(Size producer, Size boundary, bool gradient) const;

  /// Returns the output of a layer as the layer writes it. Recomputes an output that is not kept.
  SlotId made(Size producer);
  /// Returns the values that a layer keeps besides its output, or no_slot. Recomputes them if
  /// needed.
  SlotId kept(Size layer);
  /// Returns an input as the forward pass read it. A redistributed input is redistributed again,
  /// unless it is the last one of the chunk, which is kept, or a sum, whose terms are overwritten.
  SlotId input_again(Size l, std::size_t i);

 private:
  using Extent = PassTensors::Extent;
  static constexpr Placement whole = Placement::replicate();

  Size size() const { return static_cast<Size>(layers_.size()); }
  Extent extent_of_x() const { return {input_.model.input_positions, input_.model.input_width}; }
  void convert_x(Range layers);
  void find_segments(Range layers);
  void compute_again(Size l);
  std::optional<Placement> first_reader(Size producer, Size boundary) const;
  Placement sent_placement(Size producer, Size boundary) const;
  std::vector<Placement> readers_of(Size producer) const;
  SlotId in_placement(Size producer, Placement needed);
  SlotId add_output(Size l, Placement along_model, SlotId in_memory_of = no_slot);
  SlotId copy_of(SlotId raw, Placement needed, SlotId in_memory_of = no_slot);
  SlotId replaced_input(Size l, const std::vector<SlotId>& inputs) const;
  void lower_layer(Size l);
  SlotId lower_loss();

  const PlanInput& input_;
  const std::vector<LayerSpec>& layers_;
  const std::vector<Layout>& layouts_;
  PassTensors& tensors_;
  std::vector<SlotId> made_, kept_;          ///< by layer
  std::vector<std::vector<SlotId>> copies_;  ///< by layer, its output with other placements
  SlotId x_ = slot_of_x;                     ///< x in the compute type
  std::vector<SlotId> copies_of_x_;
  SlotId last_copy_ = no_slot, last_input_copy_ = no_slot;
  static constexpr Size no_segment = -1;
  std::vector<Size> segment_of_;  ///< by layer; no_segment if not recomputed
  SlotId first_of_backward_ = no_slot;
};

}  // namespace tessera::detail
