// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <tessera/base/error.hpp>
#include <tessera/nn/layers/layer_row.hpp>
#include <tessera/plan/layout/layouts.hpp>
#include <tessera/plan/pass/forward_pass.hpp>

namespace tessera {
namespace {

/// A term of the gradient of a layer's output, from one layer that reads it. The gradient is the
/// sum of all contributions.
struct Contribution {
  SlotId slot;
  Placements placements;
};

/// Turns the backward half of a pass into actions. Records by storage which layers still need its
/// contents, so that a gradient is overwritten only if a single layer needs it.
class BackwardPass {
 public:
  BackwardPass(const PlanInput& input, const detail::PlacedLayers& placements,
               detail::PassTensors& tensors, detail::ForwardPass& forward)
      : input_(input),
        layers_(input.model.layers),
        at_(placements),
        tensors_(tensors),
        forward_(forward),
        needs_gradient_(layers_.size()) {
    for (Size l = 0; l < size(); ++l) {
      const std::vector<Size>& inputs = layers_[l].inputs;
      needs_gradient_[l] =
          !layers_[l].parameters.empty() || std::any_of(inputs.begin(), inputs.end(), [&](Size i) {
            return i != LayerSpec::data && needs_gradient_[i];
          });
    }
  }

  /// Emits the backward passes of a chunk. `gradient` is the gradient of the prediction, or no_slot
  /// if another chunk computes the loss.
  void lower(Range layers, SlotId gradient) {
    contributions_.assign(layers_.size(), {});
    if (gradient != no_slot) add(size() - 1, {gradient, forward_.of_loss()});
    for (const Size l : forward_.crossing(layers.end())) {
      if (!needs_gradient_[l]) continue;
      const Placements& placements = at_[l].output_gradient;
      const SlotId gradient = new_gradient(l, placements);
      tensors_.chunk().output_gradients.push_back(
          {gradient, forward_.tag_of(l, layers.end(), true)});
      add(l, {gradient, placements});
    }
    for (Size l = layers.end() - 1; l >= layers.begin; --l)
      if (needs_gradient_[l]) lower_layer(l);
    for (const Size l : forward_.crossing(layers.begin))
      if (needs_gradient_[l])
        tensors_.chunk().input_gradients.push_back(
            {gradient_of(l, at_[l].output_gradient), forward_.tag_of(l, layers.begin, true)});
  }

 private:
  Size size() const { return static_cast<Size>(layers_.size()); }

  std::set<Size>& users(SlotId id) { return users_[tensors_.storage_of(id)]; }
  /// Returns true if no layer but `layer` needs the contents of this slot's memory.
  bool is_only_user(SlotId id, Size layer) { return users(id) == std::set<Size>{layer}; }

  void add(Size producer, Contribution contribution) {
    contributions_[producer].push_back(contribution);
    users(contribution.slot).insert(producer);
  }

  /// Returns the producer's contribution with these placements, or nullptr.
  Contribution* find(Size producer, const Placements& placements) {
    for (Contribution& held : contributions_[producer])
      if (held.placements == placements) return &held;
    return nullptr;
  }

  /// Adds a contribution, or accumulates it into the one with the same placement. In a fixed order,
  /// contributions are added in the order of their layers, each after its sum over `model`.
  void add_or_accumulate(Size producer, Contribution contribution) {
    Contribution* const held = find(producer, contribution.placements);
    if (held == nullptr || input_.numerics.reproducible) return add(producer, contribution);
    held->slot = writable(producer, held->slot, contribution.placements);
    tensors_.accumulate(contribution.slot, held->slot, true);
  }

  SlotId new_gradient(Size producer, const Placements& placements, SlotId in_memory_of = no_slot) {
    return tensors_.add(layers_[producer].name + ".gradient", TensorRole::gradient,
                        detail::PassTensors::output_of(layers_[producer]), placements,
                        in_memory_of);
  }

  /// Returns the sum of all contributions, with the placement that the layer's backward pass needs.
  /// Throws Error (usage) if no layer reads the output.
  SlotId gradient_of(Size l, const Placements& needed) {
    std::vector<Contribution>& given = contributions_[l];
    if (given.empty())
      throw Error(ExitCode::usage, "model: no layer reads the output of " + layers_[l].name);
    SlotId sum = no_slot;
    for (const Contribution& one : given) {
      SlotId id = one.slot;
      if (!tensors_.as_needed(id, needed)) {
        const bool in_place = detail::is_sum(one.placements, needed) && is_only_user(id, l);
        id = new_gradient(
            l, needed,
            in_place && tensors_.type_of(needed) == tensors_.slot(id).type ? id : no_slot);
        tensors_.redistribute(one.slot, id, in_place);
        users(id).insert(l);
      }
      if (sum == no_slot) {
        sum = id;
      } else {
        sum = writable(l, sum, needed);
        tensors_.accumulate(id, sum, true);
      }
      // The redistribution has copied it.
      if (id != one.slot && tensors_.storage_of(id) != tensors_.storage_of(one.slot))
        users(one.slot).erase(l);
    }
    return sum;
  }

  /// Returns a slot that layer `l` may add to: `id` if no other layer needs it, else a copy.
  SlotId writable(Size l, SlotId id, const Placements& placements) {
    if (is_only_user(id, l)) return id;
    const SlotId copy = new_gradient(l, placements);
    tensors_.accumulate(id, copy, false);
    users(id).erase(l);
    users(copy).insert(l);
    return copy;
  }

  /// The contributions of a layer's backward action, by producer.
  using Contributions = std::vector<std::pair<Size, Contribution>>;

  /// Emits the backward pass of a layer.
  void lower_layer(Size l) {
    const LayerSpec& layer = layers_[l];
    const LayerRow& row = row_of(layer);
    const SlotId dy = gradient_of(l, at_[l].output_gradient);
    contributions_[l].clear();

    const bool splits_weights = splits_weights_of(layer);
    Backward backward = read_by(l, dy, row.reads_inputs(layer) && !splits_weights);
    if (splits_weights) backward.gradients = Gradients::of_inputs;
    if (row.reads_output(layer)) backward.output = forward_.made(l);
    Contributions contributions;
    const bool rings = tensors_.rings(layer);
    for (std::size_t i = 0; i < layer.inputs.size() - (rings ? 1 : 0); ++i)
      add_input_gradient(backward, i, contributions);
    if (rings) lower_ring(backward, contributions);

    const std::vector<SlotId>& made = backward.input_gradients;
    const bool has_input_gradient =
        std::any_of(made.begin(), made.end(), [](SlotId id) { return id != no_slot; });
    // A layer without parameters that passes its gradient on computes nothing.
    if (rings) {
      // lower_ring() has emitted the parts.
    } else if (splits_weights ? has_input_gradient
                              : !layer.parameters.empty() || !row.passes_gradient(layer))
      tensors_.emit(std::move(backward));
    if (splits_weights) lower_weights(l, dy);
    for (const auto& [producer, contribution] : contributions)
      add_or_accumulate(producer, contribution);
    // The gradients of weights that are split off read dy later.
    if (!splits_weights) users(dy).erase(l);
  }

  /// Emits a layer part by part. Keys and values go round as in the forward pass. Each rank adds
  /// its own gradients to those that come from the rank before and sends the sum on, while it
  /// computes the next part; the last sum arrives where it belongs.
  void lower_ring(Backward backward, Contributions& contributions) {
    const Size l = backward.layer, parts = tensors_.ring_size(),
               producer = layers_[l].inputs.back();
    backward.ring_sums = forward_.ring_sums(l);
    SlotId keys = backward.inputs.back(), sent = no_slot, sum = no_slot;
    backward.input_gradients.push_back(no_slot);
    for (backward.ring_part = 0; backward.ring_part < parts; ++backward.ring_part) {
      const SlotId own = tensors_.add_shifted(keys, TensorRole::gradient, backward.ring_part);
      const bool goes_on = backward.ring_part + 1 < parts;
      const SlotId next =
          goes_on ? tensors_.add_shifted(keys, TensorRole::activation, backward.ring_part + 1)
                  : no_slot;
      if (goes_on) tensors_.pass_on(keys, next, Phase::start);
      backward.inputs.back() = keys;
      backward.input_gradients.back() = own;
      tensors_.emit(backward);
      if (goes_on) tensors_.pass_on(keys, next, Phase::finish);
      if (sum != no_slot) {
        tensors_.pass_on(sent, sum, Phase::finish);
        tensors_.accumulate(sum, own, true);
      }
      sent = own;
      sum = tensors_.add_shifted(keys, TensorRole::gradient, backward.ring_part + 1);
      tensors_.pass_on(sent, sum, Phase::start);
      keys = next;
    }
    tensors_.pass_on(sent, sum, Phase::finish);
    if (input_.has_copies()) {
      const SlotId rounded = new_gradient(producer, at_[l].input_gradients[1]);
      tensors_.accumulate(std::exchange(sum, rounded), rounded, false);
    }
    contributions.push_back({producer, {sum, at_[l].input_gradients[1]}});
  }

  /// Returns the backward pass of a layer, with the tensors that it reads.
  Backward read_by(Size l, SlotId dy, bool reads_inputs) {
    Backward backward{{.layer = l}, dy};
    for (std::size_t i = 0; i < layers_[l].inputs.size(); ++i)
      backward.inputs.push_back(reads_inputs ? forward_.input_again(l, i) : no_slot);
    backward.saved = forward_.saved(l);
    return backward;
  }

  /// Adds the gradient of input `i` to a backward pass. The layer passes its
  /// output gradient on, adds to a contribution that the producer already has, or writes a new one,
  /// which may replace the output gradient.
  void add_input_gradient(Backward& backward, std::size_t i, Contributions& contributions) {
    const Size l = backward.layer, producer = layers_[l].inputs[i];
    const LayerRow& row = row_of(layers_[l]);
    const SlotId dy = backward.output_gradient;
    std::vector<SlotId>& gradients = backward.input_gradients;
    if (producer == LayerSpec::data || !needs_gradient_[producer] ||
        row.expression.inputs[i].gradient_indices().empty())
      return gradients.push_back(no_slot);
    if (row.passes_gradient(layers_[l])) {
      contributions.push_back({producer, {dy, at_[l].output_gradient}});
      return gradients.push_back(dy);
    }
    const Placements& placements = at_[l].input_gradients[i];
    // `adds` is one flag for all inputs, so only layers with one input add.
    if (row.adds_gradient && layers_[l].inputs.size() == 1 && !input_.numerics.reproducible)
      if (const Contribution* held = find(producer, placements);
          held != nullptr && held->slot != dy && is_only_user(held->slot, producer)) {
        backward.adds = true;
        return gradients.push_back(held->slot);
      }
    const bool is_taken = std::any_of(gradients.begin(), gradients.end(), [&](SlotId id) {
      return id != no_slot && tensors_.storage_of(id) == tensors_.storage_of(dy);
    });
    const bool in_place = row.gradient_in_place && is_only_user(dy, l) && !is_taken;
    const SlotId dx = new_gradient(producer, placements, in_place ? dy : no_slot);
    contributions.push_back({producer, {dx, placements}});
    gradients.push_back(dx);
  }

  /// Returns true if the gradients of this layer's weights are split off. This pays only for
  /// layers with matrix products.
  bool splits_weights_of(const LayerSpec& layer) const {
    return input_.splits_backward() && !layer.parameters.empty() &&
           !row_of(layer).products(layer, 1).backward.empty();
  }

  /// Emits the gradients of a layer's weights to the list of the chunk that runs later.
  void lower_weights(Size l, SlotId dy) {
    tensors_.emit_to(&ChunkPass::weights);
    Backward backward = read_by(l, dy, true);
    backward.gradients = Gradients::of_parameters;
    backward.input_gradients.assign(layers_[l].inputs.size(), no_slot);
    tensors_.emit(std::move(backward));
    tensors_.emit_to(&ChunkPass::backward);
  }

  const PlanInput& input_;
  const std::vector<LayerSpec>& layers_;
  const detail::PlacedLayers& at_;
  detail::PassTensors& tensors_;
  detail::ForwardPass& forward_;
  std::map<Size, std::set<Size>> users_;  ///< by storage, the layers whose gradient it holds
  std::vector<char> needs_gradient_;      ///< by layer, true if its output depends on parameters
  std::vector<std::vector<Contribution>> contributions_;  ///< by layer
};

detail::PlacedLayers placed_layers(const PlanInput& input, const std::vector<Layout>& along_model,
                                   const detail::PassTensors& tensors) {
  const std::vector<Layout> along_context = context_layouts(input);
  detail::PlacedLayers placed(along_model.size());
  for (std::size_t l = 0; l < placed.size(); ++l) {
    const Layout &model = along_model[l], &context = along_context[l];
    const bool by_expert = input.split_experts(input.model.layers[l]) > 0;
    const auto all = [&](const std::vector<Placement>& by_model,
                         const std::vector<Placement>& by_context) {
      std::vector<Placements> placements;
      for (std::size_t i = 0; i < by_model.size(); ++i)
        placements.push_back(tensors.placed(by_model[i], by_context[i], by_expert));
      return placements;
    };
    placed[l] = {all(model.inputs, context.inputs),
                 all(model.input_gradients, context.input_gradients),
                 tensors.placed(model.output, context.output, by_expert),
                 tensors.placed(model.output_gradient, context.output_gradient, by_expert)};
  }
  return placed;
}

}  // namespace

PassPlan make_passes(const PlanInput& input, const std::vector<Layout>& layouts,
                     const std::vector<Range>& chunks) {
  detail::PassTensors tensors(input);
  const detail::PlacedLayers placements = placed_layers(input, layouts, tensors);
  detail::ForwardPass forward(input, placements, tensors.placed(loss_placement(input, layouts)),
                              tensors);
  BackwardPass backward(input, placements, tensors, forward);
  forward.add_batch();
  for (const Range& layers : chunks) {
    const SlotId gradient = forward.lower(layers);
    forward.begin_backward(layers);
    backward.lower(layers, gradient);
  }
  return tensors.take();
}

}  // namespace tessera
