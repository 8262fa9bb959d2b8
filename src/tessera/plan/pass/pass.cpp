// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <tessera/base/error.hpp>
#include <tessera/nn/layers/layer_row.hpp>
#include <tessera/plan/pass/forward_pass.hpp>

namespace tessera {
namespace {

/// A term of the gradient of a layer's output, from one reader.
struct Contribution {
  SlotId slot;
  Placement placement;
};

/// Lowers the backward half of a pass. Tracks the layers that still need the memory of each
/// gradient.
class BackwardPass {
 public:
  BackwardPass(const PlanInput& input, const std::vector<Layout>& layouts,
               detail::PassTensors& tensors, detail::ForwardPass& outputs)
      : input_(input),
        layers_(input.model.layers),
        layouts_(layouts),
        tensors_(tensors),
        outputs_(outputs),
        trains_(layers_.size()) {
    for (Size l = 0; l < size(); ++l) {
      const std::vector<Size>& inputs = layers_[l].inputs;
      trains_[l] = !layers_[l].parameters.empty() ||
                   std::any_of(inputs.begin(), inputs.end(),
                               [&](Size i) { return i != LayerSpec::data && trains_[i]; });
    }
  }

  /// Lowers the layers of a chunk. `gradient` is the gradient of the prediction, or no_slot if
  /// another chunk computes the loss.
  void lower(Range layers, SlotId gradient) {
    contributions_.assign(layers_.size(), {});
    if (gradient != no_slot) give(size() - 1, {gradient, outputs_.of_loss()});
    for (const Size l : outputs_.crossing(layers.end())) {
      if (!trains_[l]) continue;
      const Placement placement = layouts_[l].output_gradient;
      const SlotId gradient = new_gradient(l, placement);
      tensors_.chunk().output_gradients.push_back(
          {gradient, outputs_.tag_of(l, layers.end(), true)});
      give(l, {gradient, placement});
    }
    for (Size l = layers.end() - 1; l >= layers.begin; --l)
      if (trains_[l]) backward(l);
    for (const Size l : outputs_.crossing(layers.begin))
      if (trains_[l])
        tensors_.chunk().input_gradients.push_back(
            {gradient_of(l, layouts_[l].output_gradient), outputs_.tag_of(l, layers.begin, true)});
  }

 private:
  Size size() const { return static_cast<Size>(layers_.size()); }

  std::set<Size>& owners(SlotId id) { return owners_[tensors_.storage_of(id)]; }
  /// Returns true if no layer but `layer` needs the memory of this slot.
  bool belongs_to(SlotId id, Size layer) { return owners(id) == std::set<Size>{layer}; }

  void give(Size producer, Contribution contribution) {
    contributions_[producer].push_back(contribution);
    owners(contribution.slot).insert(producer);
  }

  SlotId new_gradient(Size producer, Placement placement, SlotId in_memory_of = no_slot) {
    return tensors_.add(layers_[producer].name + ".gradient", TensorRole::gradient,
                        detail::PassTensors::output_of(layers_[producer]), placement, in_memory_of);
  }

  /// Returns the sum of all contributions, with the placement that the layer's backward pass needs.
  SlotId gradient_of(Size l, Placement needed) {
    std::vector<Contribution>& given = contributions_[l];
    if (given.empty())
      throw Error(ExitCode::usage, "model: no layer reads the output of " + layers_[l].name);
    SlotId sum = no_slot;
    for (const Contribution& one : given) {
      SlotId id = one.slot;
      if (!tensors_.as_needed(id, needed)) {
        const bool in_place =
            one.placement.is_partial() && needed.is_replicate() && belongs_to(id, l);
        id = new_gradient(
            l, needed,
            in_place && tensors_.type_of(needed) == tensors_.slot(id).type ? id : no_slot);
        tensors_.redistribute(one.slot, id, in_place);
        owners(id).insert(l);
      }
      if (sum == no_slot) {
        sum = id;
      } else {
        sum = owned(l, sum, needed);
        tensors_.accumulate(id, sum, true);
      }
      if (id != one.slot && tensors_.storage_of(id) != tensors_.storage_of(one.slot))
        owners(one.slot).erase(l);
    }
    return sum;
  }

  /// Returns `id` if only layer `l` needs it, else a copy.
  SlotId owned(Size l, SlotId id, Placement placement) {
    if (belongs_to(id, l)) return id;
    const SlotId copy = new_gradient(l, placement);
    tensors_.accumulate(id, copy, false);
    owners(id).erase(l);
    owners(copy).insert(l);
    return copy;
  }

  void backward(Size l) {
    const LayerSpec& layer = layers_[l];
    const LayerRow& row = row_of(layer);
    const SlotId dy = gradient_of(l, layouts_[l].output_gradient);
    contributions_[l].clear();

    const bool weights_apart = has_weights_apart(layer);
    Action action{.operation = StepOperation::backward,
                  .index = l,
                  .operands = {.output_gradient = dy},
                  .gradients = weights_apart ? Gradients::of_inputs : Gradients::all};
    Operands& operands = action.operands;
    for (std::size_t i = 0; i < layer.inputs.size(); ++i)
      operands.inputs.push_back(
          row.reads_inputs(layer) && !weights_apart ? outputs_.input_again(l, i) : no_slot);
    operands.kept = outputs_.kept(l);
    if (row.reads_output(layer)) operands.output = outputs_.made(l);

    std::vector<Size> passed_to;
    struct Term {
      Size producer;
      SlotId slot;
      Placement placement;
    };
    std::vector<Term> terms;  // gradients that the layer cannot accumulate in place
    bool dy_is_taken = false;
    for (std::size_t i = 0; i < layer.inputs.size(); ++i) {
      const Size producer = layer.inputs[i];
      if (producer == LayerSpec::data || !trains_[producer]) {
        operands.input_gradients.push_back(no_slot);
        continue;
      }
      const Placement placement = layouts_[l].input_gradients[i];
      if (row.passes_gradient(layer)) {
        operands.input_gradients.push_back(dy);
        passed_to.push_back(producer);
        continue;
      }
      const std::optional<std::size_t> held = find_given(producer, placement);
      const SlotId there = held ? contributions_[producer][*held].slot : no_slot;
      // Action::adds holds for all inputs of a layer.
      const bool may_add = row.adds_gradient && layer.inputs.size() == 1;
      if (held && may_add && there != dy && belongs_to(there, producer)) {
        action.adds = true;
        operands.input_gradients.push_back(there);
        continue;
      }
      const bool in_place = row.gradient_in_place && belongs_to(dy, l) && !dy_is_taken;
      dy_is_taken = dy_is_taken || in_place;
      const SlotId dx = new_gradient(producer, placement, in_place ? dy : no_slot);
      operands.input_gradients.push_back(dx);
      if (held)
        terms.push_back({producer, dx, placement});
      else
        give(producer, {dx, placement});
    }
    const bool wants_inputs =
        std::any_of(operands.input_gradients.begin(), operands.input_gradients.end(),
                    [](SlotId id) { return id != no_slot; });
    if (weights_apart ? wants_inputs : !layer.parameters.empty() || !row.passes_gradient(layer))
      tensors_.emit(std::move(action));
    if (weights_apart) backward_weights(l, dy);

    for (const Size producer : passed_to) pass_on(producer, dy, layouts_[l].output_gradient);
    for (const Term& term : terms) join(term.producer, term.slot, term.placement);
    if (!weights_apart) owners(dy).erase(l);  // backward_weights() reads it
  }

  /// Returns true if the gradients of this layer's weights are split off. Only layers with products
  /// are worth it.
  bool has_weights_apart(const LayerSpec& layer) const {
    return input_.splits_backward() && !layer.parameters.empty() &&
           !row_of(layer).products(layer, 1).backward.empty();
  }

  void backward_weights(Size l, SlotId dy) {
    tensors_.emit_to(&ChunkPass::weights);
    Operands operands{.output_gradient = dy};
    for (std::size_t i = 0; i < layers_[l].inputs.size(); ++i)
      operands.inputs.push_back(outputs_.input_again(l, i));
    operands.kept = outputs_.kept(l);
    operands.input_gradients.assign(layers_[l].inputs.size(), no_slot);
    tensors_.emit({.operation = StepOperation::backward,
                   .index = l,
                   .operands = std::move(operands),
                   .gradients = Gradients::of_parameters});
    tensors_.emit_to(&ChunkPass::backward);
  }

  std::optional<std::size_t> find_given(Size producer, Placement placement) const {
    const std::vector<Contribution>& given = contributions_[producer];
    for (std::size_t c = 0; c < given.size(); ++c)
      if (!tensors_.splits_layers() || given[c].placement == placement) return c;
    return std::nullopt;
  }

  void pass_on(Size producer, SlotId dy, Placement placement) {
    if (find_given(producer, placement))
      join(producer, dy, placement);
    else
      give(producer, {dy, placement});
  }

  /// Adds `term` to the contribution of the producer with the same placement.
  void join(Size producer, SlotId term, Placement placement) {
    Contribution& held = contributions_[producer][*find_given(producer, placement)];
    held.slot = owned(producer, held.slot, placement);
    tensors_.accumulate(term, held.slot, true);
  }

  const PlanInput& input_;
  const std::vector<LayerSpec>& layers_;
  const std::vector<Layout>& layouts_;
  detail::PassTensors& tensors_;
  detail::ForwardPass& outputs_;
  std::map<Size, std::set<Size>> owners_;  ///< by storage, the layers whose gradient it holds
  std::vector<char> trains_;               ///< by layer, true if its output depends on parameters
  std::vector<std::vector<Contribution>> contributions_;  ///< by layer
};

}  // namespace

Size first_microbatch_rows(const PlanInput& input) {
  Size parts = 1;
  for (const std::string& axis : batch_axes(input.mesh)) parts *= input.mesh.size_of(axis);
  // B mod parts of the ranks hold one sample more than the others, and each splits its own samples
  // into microbatches.
  const Size extra = input.global_batch % parts;
  const Size base = input.global_batch / parts;
  return extra * balanced_split(base + 1, input.microbatches, 0).count +
         (parts - extra) * balanced_split(base, input.microbatches, 0).count;
}

PassPlan make_passes(const PlanInput& input, const std::vector<Layout>& layouts,
                     const std::vector<Range>& chunks) {
  detail::PassTensors tensors(input);
  detail::ForwardPass forward(input, layouts, tensors);
  BackwardPass backward(input, layouts, tensors, forward);
  forward.add_batch();
  for (const Range& layers : chunks) {
    const SlotId gradient = forward.lower(layers);
    forward.begin_backward(layers);
    backward.lower(layers, gradient);
  }
  return tensors.take();
}

}  // namespace tessera
