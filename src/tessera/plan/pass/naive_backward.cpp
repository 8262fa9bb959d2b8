// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <tessera/base/error.hpp>
#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/plan/pass/naive_pass.hpp>

namespace tessera::detail {

/// Emits the layers in reverse order. Each gives its inputs' producers a contribution: a term of
/// the gradient of their outputs.
void NaivePass::backward(Range layers) {
  emit_to(&ChunkPass::backward);
  for (const Size l : crossing(layers.end())) {
    if (!needs_gradient_[l]) continue;
    const SlotId gradient = new_gradient(l, at_[l].output_gradient);
    chunk().output_gradients.push_back({gradient, tag_of(l, layers.end(), true)});
    contributions_[l].push_back(gradient);
  }
  for (Size l = layers.end() - 1; l >= layers.begin; --l)
    if (needs_gradient_[l]) backward_layer(l);
  for (const Size l : crossing(layers.begin))
    if (needs_gradient_[l])
      chunk().input_gradients.push_back({gradient_of(l), tag_of(l, layers.begin, true)});
}

SlotId NaivePass::new_gradient(Size producer, const Placements& placements) {
  return add(layers_[producer].name + ".gradient", TensorRole::gradient,
             output_of(layers_[producer]), placements);
}

SlotId NaivePass::sum_of(Size producer, SlotId one, SlotId other) {
  const SlotId sum = new_gradient(producer, slot(one).placements);
  accumulate(one, sum, false);
  accumulate(other, sum, true);
  return sum;
}

/// Returns the sum of all contributions, with the placement that the layer's backward pass needs.
SlotId NaivePass::gradient_of(Size l) {
  const Placements& needed = at_[l].output_gradient;
  if (contributions_[l].empty())
    throw Error(ExitCode::usage, "model: no layer reads the output of " + layers_[l].name);
  SlotId sum = no_slot;
  for (SlotId term : contributions_[l]) {
    if (slot(term).placements != needed) {
      const SlotId moved = new_gradient(l, needed);
      redistribute(std::exchange(term, moved), moved);
    }
    sum = sum == no_slot ? term : sum_of(l, sum, term);
  }
  return sum;
}

/// Adds a contribution to the one with the same placement. In a fixed order, contributions are
/// added in the order of their layers, each after its sum over `model`.
void NaivePass::contribute(Size producer, SlotId gradient) {
  for (SlotId& held : contributions_[producer])
    if (slot(held).placements == slot(gradient).placements && !input_.numerics.reproducible) {
      held = sum_of(producer, held, gradient);
      return;
    }
  contributions_[producer].push_back(gradient);
}

void NaivePass::backward_layer(Size l) {
  const LayerSpec& layer = layers_[l];
  const LayerKind& kind = *layer.kind;
  const std::size_t inputs = layer.inputs.size();
  Backward backward;
  backward.layer = l;
  backward.saved = saved_[l];
  backward.output_gradient = gradient_of(l);
  if (kind.reads_output(layer)) backward.output = made_[l];
  for (std::size_t i = 0; i < inputs; ++i)
    backward.inputs.push_back(
        kind.reads_inputs(layer) ? in_placement(layer.inputs[i], at_[l].inputs[i]) : no_slot);
  std::vector<SlotId> gradients;
  for (std::size_t i = 0; i < inputs - (rings(layer) ? 1 : 0); ++i)
    gradients.push_back(input_gradient(l, i, backward.output_gradient));
  backward.input_gradients = gradients;
  if (rings(layer))
    gradients.push_back(backward_ring(std::move(backward)));
  else if (layer.uses_parameters() || !kind.passes_gradient(layer))  // else it computes nothing
    emit(std::move(backward));
  for (std::size_t i = 0; i < inputs; ++i)
    if (gradients[i] != no_slot) contribute(layer.inputs[i], gradients[i]);
}

/// Returns the gradient of an input, which may be that of the output; no_slot if nothing needs it.
SlotId NaivePass::input_gradient(Size l, std::size_t i, SlotId dy) {
  const LayerKind& kind = *layers_[l].kind;
  const Size producer = layers_[l].inputs[i];
  if (producer == LayerSpec::data || !needs_gradient_[producer] ||
      kind.expression.inputs[i].gradient_indices().empty())
    return no_slot;
  return kind.passes_gradient(layers_[l]) ? dy : new_gradient(producer, at_[l].input_gradients[i]);
}

/// Emits a layer part by part and returns the gradient of its keys and values, which go round as in
/// the forward pass. Each rank adds its own gradients to those that come from the rank before and
/// sends the sum on, while it computes the next part; the last sum arrives where it belongs.
SlotId NaivePass::backward_ring(Backward backward) {
  const Size l = backward.layer, parts = ring_size();
  backward.ring_sums = ring_sums(l);
  SlotId keys = backward.inputs.back(), sent = no_slot, sum = no_slot;
  backward.input_gradients.push_back(no_slot);
  for (backward.ring_part = 0; backward.ring_part < parts; ++backward.ring_part) {
    const SlotId own = add_shifted(keys, TensorRole::gradient, backward.ring_part);
    const bool goes_on = backward.ring_part + 1 < parts;
    const SlotId next =
        goes_on ? add_shifted(keys, TensorRole::activation, backward.ring_part + 1) : no_slot;
    if (goes_on) pass_on(keys, next, Phase::start);
    backward.inputs.back() = keys;
    backward.input_gradients.back() = own;
    emit(backward);
    if (goes_on) pass_on(keys, next, Phase::finish);
    if (sum != no_slot) {
      pass_on(sent, sum, Phase::finish);
      accumulate(sum, own, true);
    }
    sent = own;
    sum = add_shifted(keys, TensorRole::gradient, backward.ring_part + 1);
    pass_on(sent, sum, Phase::start);
    keys = next;
  }
  pass_on(sent, sum, Phase::finish);
  if (!input_.has_copies()) return sum;
  const SlotId rounded = new_gradient(layers_[l].inputs.back(), at_[l].input_gradients[1]);
  accumulate(sum, rounded, false);
  return rounded;
}

}  // namespace tessera::detail
