// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/alias.hpp>
#include <tessera/engine/layer_grains.hpp>
#include <tessera/optim/clipping.hpp>
#include <tessera/plan/grains.hpp>

namespace tessera {
namespace {

/// Returns a call on the part `part` of `all` equal runs of rows: samples, or single rows.
template <class T>
LayerCall<T> call_on(const LayerCall<T>& call, Range part, Size all) {
  LayerCall<T> some = call;
  const auto cut = [&](auto& matrix) {
    const Size unit = all == 0 ? 0 : static_cast<Size>(matrix.extent(0)) / all;
    matrix = rows_of(matrix, {part.begin * unit, part.count * unit});
  };
  for (std::size_t i = 0; i < max_layer_inputs; ++i)
    cut(some.inputs[i]), cut(some.input_gradients[i]), cut(some.input_gradient_terms[i]);
  cut(some.output), cut(some.output_terms), cut(some.saved), cut(some.output_gradient);
  cut(some.batch.x);
  some.batch.first += part.begin;
  some.samples = part.count;
  return some;
}

}  // namespace

template <class T>
LayerGrains<T>::LayerGrains(const Plan& plan, Size rank)
    : grains_(plan.input.microbatch_grains()),
      loss_terms_(plan.input.loss_terms()),
      nodes_(allocate_vector<State>("tessera::gradient_nodes", gradient_nodes(plan, rank))) {
  const PlanInput& input = plan.input;
  for (std::size_t l = 0; l < input.model.layers.size(); ++l) {
    Layer& layer = layers_.emplace_back();
    const LayerSpec& spec = input.model.layers[l];
    const LayerRow& row = row_of(spec);
    if (!input.numerics.reproducible) continue;
    layer.backward_in_grains = !spec.parameters.empty() && !row.sums_in_blocks;
    layer.forward_in_grains =
        (layer.backward_in_grains && row.products != no_products) || row.adds_loss;
    layer.places = gradient_places(input, spec) / grains_;
    if (plan.layouts[l].output.is_shard(0)) layer.model_ranks = input.mesh.size_of("model");
  }
}

template <class T>
void LayerGrains<T>::forward(Size index, const LayerCall<T>& call) const {
  if (!layers_[index].forward_in_grains) return tessera::forward(call);
  for (Size g = 0; g < grains_; ++g) {
    LayerCall<T> grain = call_on(call, balanced_split(call.samples, grains_, g), call.samples);
    if (call.batch.loss != nullptr) grain.batch.loss += g * loss_terms_;
    tessera::forward(grain);
  }
}

/// If ranks of `model` have different rows, grains are equal, and so are the blocks of their rows.
template <class T>
void LayerGrains<T>::backward(Size index, const LayerCall<T>& call) const {
  const Layer& layer = layers_[index];
  if (!layer.backward_in_grains) return tessera::backward(call);
  const Size rows = static_cast<Size>(call.output_gradient.extent(0));
  if (layer.model_ranks > 1) {
    const Size blocks = grains_ * layer.places / layer.model_ranks;
    for (Size b = 0; b < blocks; ++b)
      run_piece(call, call_on(call, balanced_split(rows, blocks, b), rows), {b, 1});
    return;
  }
  for (Size g = 0; g < grains_; ++g) {
    const Range samples = balanced_split(call.samples, grains_, g);
    const Size unit = call.samples == 0 ? 0 : rows / call.samples;
    const Size blocks = nested_blocks(samples.count * unit, layer.places);
    const Range places{g * layer.places, layer.places / blocks};
    if (blocks == 1) run_piece(call, call_on(call, samples, call.samples), places);
    for (Size b = 0; b < blocks && blocks > 1; ++b) {
      const Range part = balanced_split(samples.count * unit, blocks, b);
      run_piece(call, call_on(call, {samples.begin * unit + part.begin, part.count}, rows),
                {places.begin + b * places.count, places.count});
    }
  }
}

/// Runs a piece of a backward pass, whose gradients of parameters are sums over these places.
template <class T>
void LayerGrains<T>::run_piece(const LayerCall<T>& whole, LayerCall<T> piece, Range places) const {
  const auto gradient = [&](Size place, std::size_t p) -> Vector<State> {
    const Vector<State>& sum = whole.parameter_gradients[p];
    if (place == 0 || sum.data() == nullptr) return sum;
    const Size before = p == 0 ? 0 : static_cast<Size>(whole.parameter_gradients[0].extent(0));
    Size all = 0;
    for (const Vector<State>& each : whole.parameter_gradients) all += each.extent(0);
    return alias_vector(nodes_.data() + level_of_node(place) * all + before,
                        static_cast<Size>(sum.extent(0)));
  };
  for (std::size_t p = 0; p < max_layer_parameters; ++p)
    piece.parameter_gradients[p] = gradient(places.begin, p);
  tessera::backward(piece);
  join_complete_nodes(places, [&](Size to, Size from) {
    for (std::size_t p = 0; p < max_layer_parameters; ++p)
      if (whole.parameter_gradients[p].data() != nullptr)
        accumulate<State>(Vector<const State>(gradient(from, p)), gradient(to, p));
  });
}

TESSERA_INSTANTIATE_CLASS(LayerGrains);

}  // namespace tessera
