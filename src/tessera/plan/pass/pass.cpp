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
      if (trains_[l]) lower_layer(l);
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

  void give(Size producer, Contribution term) {
    contributions_[producer].push_back(term);
    owners(term.slot).insert(producer);
  }

  /// Returns the term that a producer has with this placement, or nullptr.
  Contribution* find(Size producer, Placement placement) {
    for (Contribution& held : contributions_[producer])
      if (!tensors_.splits_layers() || held.placement == placement) return &held;
    return nullptr;
  }

  /// Gives a term to a producer, or adds it to the one with the same placement.
  void give_or_add(Size producer, Contribution term) {
    Contribution* const held = find(producer, term.placement);
    if (held == nullptr) return give(producer, term);
    held->slot = owned(producer, held->slot, term.placement);
    tensors_.accumulate(term.slot, held->slot, true);
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

  /// Lowers the backward pass of a layer.
  void lower_layer(Size l) {
    const LayerSpec& layer = layers_[l];
    const LayerRow& row = row_of(layer);
    const SlotId dy = gradient_of(l, layouts_[l].output_gradient);
    contributions_[l].clear();

    const bool weights_apart = has_weights_apart(layer);
    Action action{.operation = StepOperation::backward,
                  .index = l,
                  .operands = operands_of(l, dy, row.reads_inputs(layer) && !weights_apart),
                  .gradients = weights_apart ? Gradients::of_inputs : Gradients::all};
    if (row.reads_output(layer)) action.operands.output = outputs_.made(l);
    Terms terms;
    for (std::size_t i = 0; i < layer.inputs.size(); ++i) add_input_gradient(action, i, terms);

    const std::vector<SlotId>& made = action.operands.input_gradients;
    const bool has_input_gradient =
        std::any_of(made.begin(), made.end(), [](SlotId id) { return id != no_slot; });
    if (weights_apart ? has_input_gradient
                      : !layer.parameters.empty() || !row.passes_gradient(layer))
      tensors_.emit(std::move(action));
    if (weights_apart) lower_weights(l, dy);
    for (const auto& [producer, term] : terms) give_or_add(producer, term);
    if (!weights_apart) owners(dy).erase(l);  // the gradients of weights are computed later
  }

  /// Returns the operands of a backward action, still without gradients of inputs.
  Operands operands_of(Size l, SlotId dy, bool reads_inputs) {
    Operands operands{.output_gradient = dy};
    for (std::size_t i = 0; i < layers_[l].inputs.size(); ++i)
      operands.inputs.push_back(reads_inputs ? outputs_.input_again(l, i) : no_slot);
    operands.kept = outputs_.kept(l);
    return operands;
  }

  /// The terms that the producers of a layer's inputs get once its backward action has run.
  using Terms = std::vector<std::pair<Size, Contribution>>;

  /// Adds the gradient of input `i` to the operands of a backward action. The layer passes its own
  /// output gradient on, adds to the term that the producer already has, or writes a new term,
  /// which may replace the output gradient.
  void add_input_gradient(Action& action, std::size_t i, Terms& terms) {
    const Size l = action.index, producer = layers_[l].inputs[i];
    const LayerRow& row = row_of(layers_[l]);
    const SlotId dy = action.operands.output_gradient;
    std::vector<SlotId>& gradients = action.operands.input_gradients;
    if (producer == LayerSpec::data || !trains_[producer]) return gradients.push_back(no_slot);
    if (row.passes_gradient(layers_[l])) {
      terms.push_back({producer, {dy, layouts_[l].output_gradient}});
      return gradients.push_back(dy);
    }
    const Placement placement = layouts_[l].input_gradients[i];
    // Action::adds holds for all inputs of a layer.
    if (row.adds_gradient && layers_[l].inputs.size() == 1)
      if (const Contribution* held = find(producer, placement);
          held != nullptr && held->slot != dy && belongs_to(held->slot, producer)) {
        action.adds = true;
        return gradients.push_back(held->slot);
      }
    const bool is_replaced = std::any_of(gradients.begin(), gradients.end(), [&](SlotId id) {
      return id != no_slot && tensors_.storage_of(id) == tensors_.storage_of(dy);
    });
    const bool in_place = row.gradient_in_place && belongs_to(dy, l) && !is_replaced;
    const SlotId dx = new_gradient(producer, placement, in_place ? dy : no_slot);
    terms.push_back({producer, {dx, placement}});
    gradients.push_back(dx);
  }

  /// Returns true if the gradients of this layer's weights are split off. Only layers with products
  /// are worth it.
  bool has_weights_apart(const LayerSpec& layer) const {
    return input_.splits_backward() && !layer.parameters.empty() &&
           !row_of(layer).products(layer, 1).backward.empty();
  }

  /// Lowers the gradients of a layer's weights into the list of the chunk that runs later.
  void lower_weights(Size l, SlotId dy) {
    tensors_.emit_to(&ChunkPass::weights);
    Action action{.operation = StepOperation::backward,
                  .index = l,
                  .operands = operands_of(l, dy, true),
                  .gradients = Gradients::of_parameters};
    action.operands.input_gradients.assign(layers_[l].inputs.size(), no_slot);
    tensors_.emit(std::move(action));
    tensors_.emit_to(&ChunkPass::backward);
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
