// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include <tessera/plan/pass/pass_tensors.hpp>

namespace tessera::detail {

/// The placements of a layer's tensors of a batch.
struct PlacedLayer {
  std::vector<Placements> inputs, input_gradients;
  Placements output, output_gradient;
};
using PlacedLayers = std::vector<PlacedLayer>;

/// Turns the forward half of a pass into actions: outputs of layers, their redistributions, and the
/// values that the backward half reads. Emits into `tensors`.
class ForwardPass {
 public:
  /// `of_loss`: placements of the prediction in the loss, and of its gradient.
  ForwardPass(const PlanInput& input, const PlacedLayers& placements, Placements of_loss,
              PassTensors& tensors)
      : input_(input),
        layers_(input.model.layers),
        at_(placements),
        of_loss_(std::move(of_loss)),
        tensors_(tensors) {}

  /// Adds the slots batch/x and batch/y.
  void add_batch();
  /// Emits inputs, layers and outputs of a chunk. With the model's last layer, emits the loss too
  /// and returns the gradient of the prediction; else returns no_slot.
  SlotId lower(Range layers);
  /// Begins the backward half of the same chunk. Drops the activations that are recomputed.
  void begin_backward(Range layers);

  const Placements& of_loss() const { return of_loss_; }
  /// Returns the layers before `boundary` whose outputs layers from `boundary` on read.
  std::vector<Size> crossing(Size boundary) const;
  /// Returns the tag of a message with the output of `producer`, or its gradient, across
  /// `boundary`.
  Size tag_of(Size producer, Size boundary, bool gradient) const;

  /// Returns the output of a layer as the layer writes it. Recomputes an output that is not saved.
  SlotId made(Size producer);
  /// Returns the values that a layer saves besides its output, or no_slot. Recomputes them if
  /// needed.
  SlotId saved(Size layer);
  /// Returns input `i` of layer `l` for its backward pass. A redistributed input is redistributed
  /// again, unless it is the last one of the chunk or a sum, which are kept.
  SlotId input_again(Size l, std::size_t i);
  /// Returns a slot for the unrounded sums of a layer in a ring; no_slot if its output is not
  /// rounded.
  SlotId ring_sums(Size l);

 private:
  using Extent = PassTensors::Extent;

  Size size() const { return static_cast<Size>(layers_.size()); }
  Extent extent_of_x() const { return {input_.model.input_positions, input_.model.input_width}; }
  void convert_x(Range layers);
  void find_segments(Range layers);
  void compute_again(Size l);
  const Placements* first_reader(Size producer, Size boundary) const;
  const Placements& sent_placement(Size producer, Size boundary) const;
  std::vector<const Placements*> readers_of(Size producer) const;
  SlotId in_placement(Size producer, const Placements& needed);
  SlotId add_output(Size l, const Placements& placements, SlotId in_memory_of = no_slot);
  SlotId copy_of(SlotId raw, const Placements& needed, SlotId in_memory_of = no_slot);
  SlotId replaced_input(Size l, const std::vector<SlotId>& inputs) const;
  void lower_layer(Size l);
  void lower_ring(Forward forward);
  SlotId lower_loss();

  const PlanInput& input_;
  const std::vector<LayerSpec>& layers_;
  const PlacedLayers& at_;
  Placements of_loss_;
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
