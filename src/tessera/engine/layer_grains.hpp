// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// Runs the kernels of layers grain by grain, so that their sums over rows do not depend on the
/// mesh, and sums the gradients of parameters in a tree over the grains or over blocks of their
/// rows. Without Numerics::reproducible, runs each layer once. T: the compute type.
template <class T>
class LayerGrains {
 public:
  using State = StateOf<T>;

  /// Allocates the open nodes of the trees.
  LayerGrains(const Plan& plan, Size rank);

  /// Runs a layer on a microbatch; `index` is its number in the model. Does not allocate.
  void forward(Size index, const LayerCall<T>& call) const;
  void backward(Size index, const LayerCall<T>& call) const;

 private:
  struct Layer {
    bool forward_in_grains = false, backward_in_grains = false;
    Size places = 1;       ///< of a grain in the tree of gradients
    Size model_ranks = 1;  ///< ranks that have different rows of the layer
  };
  void run_piece(const LayerCall<T>& whole, LayerCall<T> piece, Range places) const;

  Size grains_, loss_terms_;
  std::vector<Layer> layers_;
  Vector<State> nodes_;
};

}  // namespace tessera
