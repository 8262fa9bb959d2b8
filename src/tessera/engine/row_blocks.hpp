// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include <tessera/comm/communicator.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// Runs backward passes of layers. With Numerics::reproducible, the gradients of a layer's
/// parameters are sums in two trees: over blocks of rows or heads that `model` may split
/// (gradient_blocks()), and within each of them over the blocks of positions that `context` may
/// split (Split::blocks). A rank runs the layer once on what it has of each pair of blocks; it
/// copies rows that are not neighbours. T: the compute type.
template <class T>
class RowBlocks {
 public:
  using State = StateOf<T>;

  /// Allocates the nodes of the trees.
  RowBlocks(const Plan& plan, Size rank);

  /// Runs layer `index` of the model on a microbatch, or on the samples of one of several ranks of
  /// `expert` (LayerOperands::stacks()), in their order. Does not allocate. If the plan sums the
  /// gradients over `context`, they are not complete before reduce().
  void backward(Size index, const LayerCall<T>& call, Size stack = 0, Size stacks = 1);

  /// Completes the gradients of the layer that backward() ran last.
  void reduce(const Communicator& ranks);

 private:
  struct Layer {
    SplitPart split{};     ///< gradient_blocks()
    Size elements = 0;     ///< of the gradients, with padding between them
    int by_position = -1;  ///< the parameter with an index of positions: a sum over samples only
    bool needs_samples = false;  ///< a router: each rank of `context` has all positions
  };
  Vector<State> gradient(Size row, std::size_t p) const;
  void sum_samples(const LayerCall<T>& call) const;
  void sum_positions(const SplitPart& split, const LayerCall<T>& call, Size m) const;
  void sum_block(SplitPart split, const LayerCall<T>& call, Size m, Size b, Size row) const;
  void add(Size to, Size from) const;
  void finish();

  bool over_context_;
  std::vector<Layer> layers_;
  Vector<State> nodes_;
  Vector<State> gathered_;  ///< ScratchPlan::gathered_rows
  // The layer that ran last. Row r of the nodes has its r-th block of rows or heads, from the first
  // row of the stack on; open nodes of the trees over positions follow.
  Size rows_ = 1, elements_ = 0, first_row_ = 0;
  int by_position_ = -1;
  bool in_place_ = true;  ///< row 0 is the gradients themselves
  std::array<Vector<State>, max_layer_parameters> gradients_{};
  std::vector<std::array<Vector<State>, max_layer_parameters>> stacks_{1};  ///< these of all
};

}  // namespace tessera
