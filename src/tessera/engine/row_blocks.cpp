// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/alias.hpp>
#include <tessera/base/pair_tree.hpp>
#include <tessera/engine/row_blocks.hpp>
#include <tessera/optim/clipping.hpp>
#include <tessera/plan/grains.hpp>

namespace tessera {
namespace {

/// Returns a call on some rows of the call's operands.
template <class T>
LayerCall<T> call_on(const LayerCall<T>& call, Range rows) {
  LayerCall<T> some = call;
  const auto cut = [&](auto& matrix) {
    if (matrix.extent(0) > 0) matrix = rows_of(matrix, rows);
  };
  for (std::size_t i = 0; i < max_layer_inputs; ++i)
    cut(some.inputs[i]), cut(some.input_gradients[i]), cut(some.input_gradient_terms[i]);
  cut(some.output), cut(some.saved), cut(some.output_gradient);
  cut(some.batch.x);
  return some;
}

}  // namespace

template <class T>
RowBlocks<T>::RowBlocks(const Plan& plan, Size rank)
    : nodes_(allocate_vector<State>("tessera::gradient_nodes",
                                    plan_scratch(plan, rank).gradient_nodes)) {
  for (std::size_t l = 0; l < plan.placements.size(); ++l) {
    const Split split = gradient_blocks(plan.input, plan.input.model.layers[l], plan.placements[l]);
    layers_.push_back({split, split.parts > 1 ? plan.input.mesh.coordinate(rank, "model") : 0});
  }
}

/// A rank without blocks has no rows or heads.
template <class T>
void RowBlocks<T>::backward(Size index, const LayerCall<T>& call) const {
  SplitPart split = layers_[index];
  const bool of_rows = split.units == 0;
  if (of_rows) split.units = call.samples * call.layer.positions();
  const Range own = split.blocks_of(split.part);
  if (split.blocks <= 1 || own.count == 0) return tessera::backward(call);
  const Size first = split.block(own.begin).begin;
  for (Size b = own.begin; b < own.end(); ++b) {
    const Range block = split.block(b), some{block.begin - first, block.count};
    LayerCall<T> of_block = of_rows ? call_on(call, some) : call;
    if (!of_rows) of_block.columns = some;
    if (!of_rows && b > own.begin) of_block.input_gradients = {};
    run_block(call, of_block, {b - own.begin, 1});
  }
}

/// Runs a block of a backward pass, whose gradients of parameters are sums over these places.
template <class T>
void RowBlocks<T>::run_block(const LayerCall<T>& whole, LayerCall<T> block, Range places) const {
  const auto gradient = [&](Size row, std::size_t p) -> Vector<State> {
    const Vector<State>& sum = whole.parameter_gradients[p];
    if (row == 0 || sum.data() == nullptr) return sum;
    const Size before = p == 0 ? 0 : static_cast<Size>(whole.parameter_gradients[0].extent(0));
    Size all = 0;
    for (const Vector<State>& each : whole.parameter_gradients) all += each.extent(0);
    return alias_vector(nodes_.data() + (row - 1) * all + before, static_cast<Size>(sum.extent(0)));
  };
  for (std::size_t p = 0; p < max_layer_parameters; ++p)
    block.parameter_gradients[p] = gradient(nodes_in({0, places.begin}), p);
  tessera::backward(block);
  join_rows(0, places, [&](Size lower, Size upper) {
    for (std::size_t p = 0; p < max_layer_parameters; ++p)
      if (whole.parameter_gradients[p].data() != nullptr)
        accumulate<State>(Vector<const State>(gradient(upper, p)), gradient(lower, p));
  });
}

TESSERA_INSTANTIATE_CLASS(RowBlocks);

}  // namespace tessera
