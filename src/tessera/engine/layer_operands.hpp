// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <tessera/base/view.hpp>
#include <tessera/engine/arenas.hpp>
#include <tessera/engine/frame.hpp>
#include <tessera/engine/gradient_tree.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/products/gemm.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// Turns the operands of actions on layers into Views: parameters and their gradients in the
/// arenas, other tensors in the frame. The plan, the frame and the arenas must outlive this object.
/// T: the compute type.
template <class T>
class LayerOperands {
 public:
  using State = StateOf<T>;

  /// `used` are the parameters that layers read. Allocates the scratch memory of layers.
  LayerOperands(const Plan& plan, Size rank, const Frame<T>& frame, const StateArena<T>& used,
                const GradientTree<State>& gradients);

  /// Return the operands of a layer for an action. `call` is the action's own cache: the operands
  /// are made again only if the number of samples changes. The caller sets LayerCall::batch.
  LayerCall<T>& of(const Forward& forward, std::optional<LayerCall<T>>& call,
                   const Microbatch<State>& batch) const;
  LayerCall<T>& of(const Backward& backward, std::optional<LayerCall<T>>& call,
                   const Microbatch<State>& batch) const;

  /// Returns the operands of the gradients of experts for the samples of one of the ranks along
  /// `expert` (StatePlan::grains_of_experts).
  LayerCall<T> of_stack(const LayerCall<T>& call, const Backward& backward,
                        const Microbatch<State>& batch, Size stack) const;

  /// Sums the gradients of a layer's parameters over the microbatches up to this one, unless ranks
  /// of `model` must sum them first. Does nothing if microbatches add to one memory.
  void complete_gradients(Size layer, Size microbatch) const;

  const LayerSpec& layer(Size index) const { return layers_[index]; }
  const std::vector<LayerSpec>& layers() const { return layers_; }
  /// Returns the scratch memory that all layers share.
  const Vector<State>& scratch() const { return scratch_; }

 private:
  /// The place of a parameter in the arenas.
  struct ParameterView {
    Size bucket;
    Range elements;   ///< elements of the bucket, without padding
    bool is_partial;  ///< ranks of `model` sum the gradient
    Size use = 0;     ///< by a tied layer, if uses are summed apart (BucketPlan::uses)
  };

  LayerCall<T> make(const Compute& action, Size samples, const Microbatch<State>& batch) const;
  void set_x(LayerCall<T>& call, const Compute& action, const Microbatch<State>& batch) const;
  void add_output(LayerCall<T>& call, const Forward& forward, const Microbatch<State>& batch) const;
  void add_gradients(LayerCall<T>& call, const Backward& backward,
                     const Microbatch<State>& batch) const;
  void set_parameter_gradients(LayerCall<T>& call, const Backward& backward, Size microbatch,
                               Size stack = 0) const;
  void clear_rest_of_unit(Size layer, Size microbatch) const;

  const StagePlan& stage_;
  const Frame<T>& frame_;
  const StateArena<T>& used_;
  const GradientTree<State>& gradients_;
  std::vector<LayerSpec> layers_;    ///< layers with this rank's extents
  bool adds_microbatches_;           ///< later microbatches add to the gradients of earlier ones
  std::vector<LayerBlocks> blocks_;  ///< by layer
  std::vector<std::vector<ParameterView>> views_;  ///< by layer and parameter
  /// The layer whose backward pass adds to the gradient of a tied layer; -1 if none does.
  Size tied_owner_ = -1;
  Gemm<T> gemm_;
  Vector<State> scratch_;
};

}  // namespace tessera
