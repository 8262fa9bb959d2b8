// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// Runs backward passes of layers. With Numerics::reproducible, it runs a layer whose rows or heads
/// `model` may split block by block, and sums the gradients of parameters in a tree over the
/// blocks: such a sum does not depend on the ranks that have them. T: the compute type.
template <class T>
class RowBlocks {
 public:
  using State = StateOf<T>;

  /// Allocates the open nodes of the trees.
  RowBlocks(const Plan& plan, Size rank);

  /// Runs layer `index` of the model on a microbatch. Does not allocate.
  void backward(Size index, const LayerCall<T>& call) const;

 private:
  void run_block(const LayerCall<T>& whole, LayerCall<T> block, Range places) const;

  std::vector<SplitPart> layers_;  ///< gradient_blocks()
  Vector<State> nodes_;
};

}  // namespace tessera
