// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/plan/layout/layer_placements.hpp>
#include <tessera/plan/pass/pass_tensors.hpp>

namespace tessera::detail {

/// The placements of a layer's tensors of a batch.
struct PlacedLayer {
  std::vector<Placements> inputs, input_gradients;
  Placements output, output_gradient;
};

/// The actions that make a tensor of the forward pass, which the backward pass may repeat: a layer,
/// or the redistribution of a layer's output.
struct Making {
  static constexpr Size no_layer = -1;
  Size layer = no_layer;
  Range slots;              ///< that they write; the tensor is the first one
  SlotId source = no_slot;  ///< that a redistribution reads, as its layer wrote it
  Range actions{};          ///< in ChunkPass::forward
};

/// Writes the actions of a chunk as if memory and calls were free. Each tensor has a slot of its
/// own. The backward pass finds every tensor of the forward pass. The one exception is a gradient
/// that a layer passes on to its inputs, which is one slot.
class NaivePass : public PassTensors {
 public:
  NaivePass(const PlanInput& input, const std::vector<LayerPlacements>& layers);

  /// Emits the forward and the backward pass of a chunk. Throws Error (usage) if no layer reads an
  /// output.
  void lower(Range layers);

  /// Returns what the forward pass of the latest chunk makes, by the numbers of slots.
  const std::vector<Making>& makings() const { return makings_; }
  /// Returns the last redistributed tensor that a layer of this chunk reads, and which is no sum.
  SlotId last_copy() const { return last_copy_; }

 private:
  Size size() const { return static_cast<Size>(layers_.size()); }
  Extent extent_of_x() const { return {input_.model.input_positions, input_.model.input_width}; }

  void forward(Range layers);
  void convert_x(Range layers);
  std::vector<Size> crossing(Size boundary) const;
  const Placements* first_reader(Size producer, Size boundary) const;
  const Placements& sent_placement(Size producer, Size boundary) const;
  Size tag_of(Size producer, Size boundary, bool gradient) const;
  SlotId in_placement(Size producer, const Placements& needed);
  SlotId add_output(Size l, const Placements& placements);
  void forward_layer(Size l);
  void forward_ring(Forward forward);
  SlotId ring_sums(Size l);
  SlotId loss();

  void backward(Range layers);
  SlotId new_gradient(Size producer, const Placements& placements);
  SlotId sum_of(Size producer, SlotId one, SlotId other);
  SlotId gradient_of(Size l);
  void contribute(Size producer, SlotId gradient);
  void backward_layer(Size l);
  SlotId input_gradient(Size l, std::size_t i, SlotId dy);
  SlotId backward_ring(Backward backward);

  const std::vector<LayerSpec>& layers_;
  std::vector<PlacedLayer> at_;       ///< by layer
  Placements of_loss_;                ///< of the prediction in the loss, and of its gradient
  Size blocks_of_loss_;               ///< of the columns of a softmax (LayerPlacements::columns)
  std::vector<char> needs_gradient_;  ///< by layer, true if its output depends on parameters
  SlotId x_ = slot_of_x;              ///< x in the compute type
  std::vector<SlotId> copies_of_x_;
  std::vector<SlotId> made_, saved_;                ///< by layer
  std::vector<std::vector<SlotId>> copies_;         ///< by layer, its output redistributed
  std::vector<std::vector<SlotId>> contributions_;  ///< by layer, terms of its output's gradient
  std::vector<Making> makings_;
  SlotId last_copy_ = no_slot;
};

}  // namespace tessera::detail
