// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/plan/pass/kept_tensors.hpp>
#include <tessera/plan/pass/passes.hpp>

namespace tessera::detail {
namespace {

class Dropping {
 public:
  Dropping(const PlanInput& input, NaivePass& pass, Range layers, bool drops)
      : layers_(input.model.layers),
        pass_(pass),
        drops_(drops),
        by_kind_(chooses_kinds(input.activation_checkpointing)),
        kept_(kept_tensors(input, layers)) {}

  void run() {
    const std::vector<Action> naive = std::exchange(pass_.chunk().backward, {});
    // Messages of a ring belong to the next layer.
    std::vector<const Backward*> readers(naive.size(), nullptr);
    for (std::size_t i = naive.size(); i-- > 0;) {
      readers[i] = std::get_if<Backward>(&naive[i]);
      if (readers[i] == nullptr && i + 1 < naive.size()) readers[i] = readers[i + 1];
    }
    for (std::size_t i = 0; i < naive.size(); ++i) {
      Action action = naive[i];
      delays_ = false;
      if (auto* backward = std::get_if<Backward>(&action)) {
        delays_ = backward->gradients == Gradients::of_parameters;
        begin_unit(backward->layer);
        read_again(*backward);
      } else if (auto* message = std::get_if<Message>(&action); message && readers[i]) {
        Backward reader = *readers[i];
        begin_unit(reader.layer);
        // A layer that is recomputed sends the same tensors, so it ends before the ring begins.
        if (reader.ring_part == 0 && message->phase == Phase::start) read_again(reader);
        if (message->sends) message->tensor = again(message->tensor, reader.layer);
      }
      emit(std::move(action));
    }
  }

 private:
  static constexpr Size all_readers = -2;

  /// Returns what makes a tensor; nullptr if no layer or redistribution of this chunk does.
  const Making* making_of(SlotId id) const {
    const std::vector<Making>& all = pass_.makings();
    const auto made = std::partition_point(
        all.begin(), all.end(), [&](const Making& made) { return made.slots.end() <= id; });
    return made == all.end() || id < made->slots.begin ? nullptr : &*made;
  }

  bool is_recomputed(SlotId output) const {
    const Making* made = making_of(output);
    return made && kept_[made->layer] == Kept::nothing;
  }

  bool is_kept(const Making& made, SlotId id) const {
    if (made.layer != Making::no_layer)
      return kept_[made.layer] == Kept::all ||
             (id == made.slots.begin && kept_[made.layer] == Kept::output);
    const Slot &source = pass_.slot(made.source), &copy = pass_.slot(id);
    return !is_recomputed(made.source) &&
           (are_terms(source.placements) || source.sample_axes != copy.sample_axes ||
            id == pass_.last_copy());
  }

  /// Returns the tensor that `reader` reads in place of one of the forward pass. A recomputed
  /// tensor is made once. A gathered tensor would cost memory until the backward pass, so each
  /// reader gathers it again (Korthikanti et al. 2022).
  SlotId again(SlotId id, Size reader) {
    if (const auto found = made_again_.find({id, all_readers}); found != made_again_.end())
      return found->second;
    const Making* made = id == no_slot ? nullptr : making_of(id);
    if (!drops_ || made == nullptr || is_kept(*made, id)) return id;
    if (made->layer != Making::no_layer || is_recomputed(made->source)) reader = all_readers;
    if (!made_again_.contains({id, reader})) repeat(Making(*made), reader);
    return made_again_.at({id, reader});
  }

  /// Replaces what a layer reads of the forward pass.
  void read_again(Backward& backward) {
    for (SlotId& input : backward.inputs) input = again(input, backward.layer);
    backward.saved = again(backward.saved, backward.layer);
    backward.output = again(backward.output, backward.layer);
  }

  void repeat(const Making& made, Size reader) {
    const bool is_layer = made.layer != Making::no_layer;
    // A tensor that several actions may read does not wait for the gradients of weights.
    const bool delays = std::exchange(delays_, delays_ && reader != all_readers);
    // A layer that is recomputed reads a redistribution of its own.
    const Size own_reader = is_layer ? all_readers - 1 - made.layer : reader;
    const auto is_own = [&](SlotId id) { return id >= made.slots.begin && id < made.slots.end(); };
    std::vector<Action> actions;
    for (Size i = made.actions.begin; i < made.actions.end(); ++i)
      actions.push_back(pass_.chunk().forward[i]);
    for (Action& action : actions)
      rename_slots(action, [&](SlotId id) { return is_own(id) ? id : again(id, own_reader); });
    const Size shift = pass_.next_slot() - made.slots.begin;
    for (SlotId id = made.slots.begin; id < made.slots.end(); ++id)
      made_again_[{id, reader}] = pass_.add_like(id);
    for (Action& action : actions) {
      rename_slots(action, [&](SlotId id) { return is_own(id) ? id + shift : id; });
      if (auto* forward = std::get_if<Forward>(&action)) forward->recomputes = true;
      emit_again(std::move(action));
    }
    delays_ = delays;
  }

  /// Notes where the backward pass of a run of layers with parameters in one unit begins.
  void begin_unit(Size l) {
    const std::string unit = layers_[l].parameters.empty() ? "" : layers_[l].unit;
    if (unit.empty() || unit != unit_)
      unit_begin_ = static_cast<Size>(pass_.chunk().backward.size());
    unit_ = unit;
  }

  /// Emits an action of the forward pass. Those of another unit, such as norms, come before the
  /// unit that reads them, whose parameters would be gathered a second time behind them.
  void emit_again(Action action) {
    if (delays_ || !by_kind_) return emit(std::move(action));
    std::vector<Action>& list = pass_.chunk().backward;
    list.insert(list.begin() + unit_begin_++, std::move(action));
  }

  void emit(Action action) {
    pass_.emit_to(delays_ ? &ChunkPass::weights : &ChunkPass::backward);
    pass_.emit(std::move(action));
  }

  const std::vector<LayerSpec>& layers_;
  NaivePass& pass_;
  bool drops_, by_kind_;
  std::vector<Kept> kept_;  ///< by layer
  std::string unit_{};      ///< whose backward pass is emitted; empty without parameters
  Size unit_begin_ = 0;     ///< its first action in ChunkPass::backward
  std::map<std::pair<SlotId, Size>, SlotId> made_again_;  ///< by tensor and reader
  bool delays_ = false;  ///< the action is a gradient of weights that is split off
};

}  // namespace

std::pair<Backward, Backward> split_gradients(const Backward& all) {
  Backward of_inputs = all, of_parameters = all;
  of_parameters.gradients = Gradients::of_parameters;
  of_parameters.output = no_slot;
  std::fill(of_parameters.input_gradients.begin(), of_parameters.input_gradients.end(), no_slot);
  of_inputs.gradients = Gradients::of_inputs;
  std::fill(of_inputs.inputs.begin(), of_inputs.inputs.end(), no_slot);
  return {std::move(of_inputs), std::move(of_parameters)};
}

void split_weight_gradients(const PlanInput& input, ChunkPass& chunk) {
  for (Action& action : std::exchange(chunk.backward, {})) {
    const auto* all = std::get_if<Backward>(&action);
    const LayerSpec* layer = all ? &input.model.layers[all->layer] : nullptr;
    // It pays only for matrix products. A layer tied to one on this stage must write its gradient
    // before that one adds to it.
    if (!all || !is_kernel(*layer, 0) || (layer->tied_to >= 0 && !input.ties_stages())) {
      chunk.backward.push_back(std::move(action));
      continue;
    }
    auto [of_inputs, of_parameters] = split_gradients(*all);
    if (of_inputs.input_gradients != of_parameters.input_gradients)
      chunk.backward.push_back(std::move(of_inputs));
    chunk.backward.push_back(std::move(of_parameters));
  }
}

void drop_tensors(const PlanInput& input, NaivePass& pass, Range layers, bool drops) {
  Dropping(input, pass, layers, drops).run();
}

}  // namespace tessera::detail
