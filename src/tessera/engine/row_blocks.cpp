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
    Layer& layer = layers_.emplace_back();
    layer.blocks = row_blocks(plan.input, plan.input.model.layers[l]);
    if (plan.placements[l].along("model").output.is_shard(0))
      layer.model_ranks = plan.input.mesh.size_of("model");
  }
}

/// If ranks of `model` have different rows, their blocks are equal.
template <class T>
void RowBlocks<T>::backward(Size index, const LayerCall<T>& call) const {
  const Layer& layer = layers_[index];
  if (layer.blocks == 1) return tessera::backward(call);
  const Size rows = static_cast<Size>(call.output_gradient.extent(0));
  const Size own = layer.blocks / layer.model_ranks;
  const Size blocks = layer.model_ranks > 1 ? own : nested_blocks(rows, own);
  const Size places = own / blocks;
  for (Size b = 0; b < blocks; ++b)
    run_block(call, call_on(call, balanced_split(rows, blocks, b)), {b * places, places});
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
