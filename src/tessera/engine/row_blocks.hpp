// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// Runs backward passes of layers. With Numerics::reproducible, it runs a layer whose rows `model`
/// may split block by block, and sums the gradients of parameters in a tree over the blocks: such a
/// sum does not depend on the ranks that have the rows. T: the compute type.
template <class T>
class RowBlocks {
 public:
  using State = StateOf<T>;

  /// Allocates the open nodes of the trees.
  RowBlocks(const Plan& plan, Size rank);

  /// Runs layer `index` of the model on a microbatch. Does not allocate.
  void backward(Size index, const LayerCall<T>& call) const;

 private:
  struct Layer {
    Size blocks = 1;       ///< of the rows of a microbatch on all ranks of `model`
    Size model_ranks = 1;  ///< ranks that have different rows
  };
  void run_block(const LayerCall<T>& whole, LayerCall<T> block, Range places) const;

  std::vector<Layer> layers_;
  Vector<State> nodes_;
};

}  // namespace tessera
