// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <tessera/plan/pass/pass_tensors.hpp>

namespace tessera::detail {

/// Turns the forward half of a pass into actions: outputs of layers, their redistributions, and the
/// values that the backward half reads. Emits into `tensors`.
class ForwardPass {
 public:
  ForwardPass(const PlanInput& input, const std::vector<Layout>& layouts, PassTensors& tensors)
      : input_(input), layers_(input.model.layers), layouts_(layouts), tensors_(tensors) {}

  /// Adds the slots batch/x and batch/y.
  void add_batch();
  /// Emits inputs, layers and outputs of a chunk. With the model's last layer, emits the loss too
  /// and returns the gradient of the prediction; else returns no_slot.
  SlotId lower(Range layers);
  /// Begins the backward half of the same chunk. Drops the activations that are recomputed.
  void begin_backward(Range layers);

  /// Returns the placement of the prediction in the loss, and of its gradient.
  Placement of_loss() const { return loss_placement(input_, layouts_); }
  /// Returns the layers before `boundary` whose outputs layers from `boundary` on read.
  std::vector<Size> crossing(Size boundary) const;
  /// Returns the tag of a message with the output of `producer`, or its gradient, across
  /// `boundary`.
  Size tag_of(Size producer, Size boundary, bool gradient) const;

  /// Return the extents of a layer's output as the layer writes it, and as its readers read it.
  /// They differ at the first and at the last layer that `expert` splits.
  PassTensors::Extent written_by(Size l) const;
  PassTensors::Extent output_of(Size l) const;

  /// Returns the output of a layer as its readers read it. Recomputes an output that is not saved.
  SlotId made(Size producer);
  /// Returns the values that a layer saves besides its output, or no_slot. Recomputes them if
  /// needed.
  SlotId saved(Size layer);
  /// Returns input `i` of layer `l` for its backward pass. A redistributed input is redistributed
  /// again, unless it is the last one of the chunk or a sum, which are kept.
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
  SlotId add_output(Size l, PassTensors::Extent of, Placement along_model,
                    SlotId in_memory_of = no_slot);
  SlotId copy_of(SlotId raw, Placement needed, SlotId in_memory_of = no_slot);
  SlotId replaced_input(Size l, const std::vector<SlotId>& inputs) const;
  void lower_layer(Size l);
  SlotId lower_loss();

  const PlanInput& input_;
  const std::vector<LayerSpec>& layers_;
  const std::vector<Layout>& layouts_;
  PassTensors& tensors_;
  std::vector<SlotId> made_, saved_;         ///< by layer
  std::vector<std::vector<SlotId>> copies_;  ///< by layer, its output with other placements
  SlotId x_ = slot_of_x;                     ///< x in the compute type
  std::vector<SlotId> copies_of_x_;
  SlotId last_copy_ = no_slot;        ///< the last redistributed tensor so far
  SlotId last_input_copy_ = no_slot;  ///< the last one that a layer of the chunk reads
  static constexpr Size no_segment = -1;
  std::vector<Size> segment_of_;        ///< by layer; no_segment if not recomputed
  SlotId first_of_backward_ = no_slot;  ///< slots from here on belong to the backward pass
};

}  // namespace tessera::detail
