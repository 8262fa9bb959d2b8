// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <tessera/base/error.hpp>
#include <tessera/nn/layer_row.hpp>
#include <tessera/plan/layouts.hpp>
#include <tessera/plan/pass.hpp>
#include <tessera/plan/stages.hpp>

namespace tessera {
namespace {

constexpr Placement whole = Placement::replicate();

/// A gradient of a layer's output that a consumer has given, as it has given it.
struct Contribution {
  SlotId slot;
  Placement placement;
};

class PassBuilder {
 public:
  PassBuilder(const PlanInput& input, const std::vector<Layout>& layouts)
      : input_(input),
        layouts_(layouts),
        layers_(input.model.layers),
        rows_(first_microbatch_rows(input)),
        splits_layers_(input.mesh.size_of("model") > 1),
        trains_(layers_.size()) {
    for (Size l = 0; l < size(); ++l) {
      const std::vector<Size>& inputs = layers_[l].inputs;
      trains_[l] = !layers_[l].parameters.empty() ||
                   std::any_of(inputs.begin(), inputs.end(),
                               [&](Size i) { return i != LayerSpec::data && trains_[i]; });
    }
  }

  PassPlan build(const std::vector<Range>& chunks) {
    add_batch();
    for (const Range& layers : chunks) {
      find_segments(layers);
      add_chunk(layers);
    }
    return std::move(pass_);
  }

 private:
  Size size() const { return static_cast<Size>(layers_.size()); }

  // Chunks and what travels between them.

  void add_chunk(Range layers) {
    made_.assign(layers_.size(), no_slot);
    kept_.assign(layers_.size(), no_slot);
    copies_.assign(layers_.size(), {});
    copies_of_x_.clear();
    contributions_.assign(layers_.size(), {});
    last_copy_ = last_input_copy_ = no_slot;
    pass_.chunks.emplace_back();

    emit_to_ = &ChunkPass::forward;
    for (const Size l : crossing(layers.begin))
      chunk().inputs.push_back({made_[l] = add_output(l, sent_placement(l, layers.begin)),
                                tag_of(l, layers.begin, false)});
    for (Size l = layers.begin; l < layers.end(); ++l) forward(l);
    for (const Size l : crossing(layers.end()))
      chunk().outputs.push_back(
          {in_placement(l, sent_placement(l, layers.end())), tag_of(l, layers.end(), false)});
    last_input_copy_ = last_copy_;
    if (layers.end() == size()) loss();

    emit_to_ = &ChunkPass::backward;
    first_of_backward_ = static_cast<SlotId>(pass_.slots.size());
    forget(layers);
    for (const Size l : crossing(layers.end())) {
      if (!trains_[l]) continue;
      const Placement placement = layouts_[l].output_gradient;
      const SlotId gradient = new_gradient(l, placement);
      chunk().output_gradients.push_back({gradient, tag_of(l, layers.end(), true)});
      give(l, {gradient, placement});
    }
    for (Size l = layers.end() - 1; l >= layers.begin; --l)
      if (trains_[l]) backward(l);
    for (const Size l : crossing(layers.begin))
      if (trains_[l])
        chunk().input_gradients.push_back(
            {gradient_of(l, layouts_[l].output_gradient), tag_of(l, layers.begin, true)});
  }

  ChunkPass& chunk() { return pass_.chunks.back(); }

  // Recomputation.

  /// The last segment of the model is needed again at once, and has none.
  void find_segments(Range layers) {
    segment_of_.assign(layers_.size(), no_segment);
    if (input_.recomputation.units == 0) return;
    Size units = 0;
    for (const Range& unit : units_of(layers_)) {
      if (unit.begin < layers.begin || unit.begin >= layers.end()) continue;
      const Size segment = units++ / input_.recomputation.units;
      for (Size l = unit.begin; l < unit.end(); ++l) segment_of_[l] = segment;
    }
    if (const Size last = segment_of_[size() - 1]; layers.end() == size())
      std::replace(segment_of_.begin(), segment_of_.end(), last, no_segment);
  }

  /// What only the own segment reads is not kept: made() computes it again.
  void forget(Range layers) {
    for (Size l = layers.begin; l < layers.end(); ++l) {
      if (segment_of_[l] == no_segment) continue;
      kept_[l] = no_slot;
      bool is_kept = false;
      for (Size reader = l + 1; reader < layers.end(); ++reader) {
        const std::vector<Size>& inputs = layers_[reader].inputs;
        is_kept = is_kept || (segment_of_[reader] != segment_of_[l] &&
                              std::find(inputs.begin(), inputs.end(), l) != inputs.end());
      }
      if (is_kept) continue;
      made_[l] = no_slot;
      copies_[l].clear();
    }
  }

  /// In the backward pass, even if only gradients of weights, which come later, should need it.
  void compute_again(Size l) {
    const auto emit_to = std::exchange(emit_to_, &ChunkPass::backward);
    forward(l);
    emit_to_ = emit_to;
  }

  /// The layers before `boundary` whose outputs those behind it read.
  std::vector<Size> crossing(Size boundary) const {
    std::vector<Size> crossing;
    for (Size l = 0; l < boundary && boundary < size(); ++l)
      if (first_reader(l, boundary)) crossing.push_back(l);
    return crossing;
  }

  /// How the first layer from `boundary` on that reads the output of `producer` needs it.
  std::optional<Placement> first_reader(Size producer, Size boundary) const {
    for (Size l = boundary; l < size(); ++l)
      for (std::size_t i = 0; i < layers_[l].inputs.size(); ++i)
        if (layers_[l].inputs[i] == producer) return layouts_[l].inputs[i];
    return std::nullopt;
  }

  Placement sent_placement(Size producer, Size boundary) const {
    const Placement made = layouts_[producer].output;
    return made.is_partial() ? *first_reader(producer, boundary) : made;
  }

  Size tag_of(Size producer, Size boundary, bool gradient) const {
    return (boundary * size() + producer) * 2 + (gradient ? 1 : 0);
  }

  // Slots and their memory.

  SlotId add_slot(std::string path, TensorRole role, Size width, Placement along_model,
                  SlotId in_memory_of = no_slot) {
    Placements placements = replicated(input_.mesh);
    for (const std::string& axis : batch_axes(input_.mesh))
      placements[*input_.mesh.find(axis)] = Placement::shard(0);
    if (const auto model = input_.mesh.find("model")) placements[*model] = along_model;
    Slot slot{std::move(path), role, {rows_, width}, placements, along_model, input_.compute_type};
    if (in_memory_of != no_slot) {
      slot.storage = storage_of(in_memory_of);
    } else if (role != TensorRole::batch) {
      // The first rank has the largest block of everything.
      const Size elements =
          num_elements(local_block(slot.shape, slot.placements, input_.mesh, 0).extent);
      slot.storage = static_cast<Size>(pass_.storages.size());
      pass_.storages.push_back({elements * size_of(slot.type)});
      owners_.emplace_back();
    }
    pass_.slots.push_back(std::move(slot));
    return static_cast<SlotId>(pass_.slots.size()) - 1;
  }

  const Slot& slot(SlotId id) const { return pass_.slots[static_cast<std::size_t>(id)]; }

  Size storage_of(SlotId id) const { return slot(id).storage; }

  void emit(Action action) { (chunk().*emit_to_).push_back(std::move(action)); }

  void redistribute(SlotId from, SlotId to) {
    const Placement before = slot(from).along_model, after = slot(to).along_model;
    const Shape group = group_of(slot(from));
    SlotId scratch = no_slot;
    if (packed_elements(before, after, group, input_.mesh.size_of("model"), 0) > 0)
      scratch = add_slot(slot(to).path + ".packed", TensorRole::scratch, group[1],
                         packed_placement(before, after));
    emit({ActionKind::redistribute, to, 0, {from}, {to}, scratch});
  }

  /// What the first ranks along `model`, which have the largest blocks, hold together.
  Shape group_of(const Slot& of) const {
    Placements placements = of.placements;
    if (const auto model = input_.mesh.find("model")) placements[*model] = whole;
    return local_block(of.shape, placements, input_.mesh, 0).extent;
  }

  /// An all-to-all packs its part of the rows, everything else the whole.
  static Placement packed_placement(Placement before, Placement after) {
    return transition(before, after) == Transition::all_to_all ? Placement::shard(0) : whole;
  }

  void add_batch() {
    add_slot("batch/x", TensorRole::batch, input_.model.input_width, whole);
    add_slot("batch/y", TensorRole::batch, input_.model.output_width(), whole);
  }

  // Forward.

  /// The layers that read an output, as they need it; the loss needs it whole.
  std::vector<Placement> readers_of(Size producer) const {
    std::vector<Placement> readers;
    for (Size l = 0; l < size(); ++l)
      for (std::size_t i = 0; i < layers_[l].inputs.size(); ++i)
        if (layers_[l].inputs[i] == producer) readers.push_back(layouts_[l].inputs[i]);
    if (producer == size() - 1) readers.push_back(whole);
    return readers;
  }

  SlotId made(Size producer) {
    if (producer == LayerSpec::data) return slot_of_x;
    if (made_[producer] == no_slot) compute_again(producer);
    return made_[producer];
  }

  bool as_needed(SlotId id, Placement needed) const {
    return !splits_layers_ || slot(id).along_model == needed;
  }

  /// The output of `producer` with the placement that a reader needs, made if it is not there.
  SlotId in_placement(Size producer, Placement needed) {
    const SlotId raw = made(producer);
    if (as_needed(raw, needed)) return raw;
    auto& copies = producer == LayerSpec::data ? copies_of_x_ : copies_[producer];
    for (const SlotId copy : copies)
      if (slot(copy).along_model == needed) return copy;
    const std::vector<Placement> readers = readers_of(producer);
    const bool in_place = slot(raw).along_model.is_partial() && needed.is_replicate() &&
                          std::count(readers.begin(), readers.end(), needed) ==
                              static_cast<std::ptrdiff_t>(readers.size());
    const SlotId copy = copy_of(raw, needed, in_place);
    redistribute(raw, copy);
    copies.push_back(copy);
    if (!in_place) last_copy_ = copy;
    return copy;
  }

  SlotId add_output(Size l, Placement along_model, SlotId in_memory_of = no_slot) {
    return add_slot(layers_[l].name, TensorRole::activation, layers_[l].out, along_model,
                    in_memory_of);
  }

  SlotId copy_of(SlotId raw, Placement needed, bool in_place) {
    return add_slot(slot(raw).path, TensorRole::activation, slot(raw).shape[1], needed,
                    in_place ? raw : no_slot);
  }

  /// The input whose memory the output of layer `l` takes, if nobody reads it again.
  SlotId replaced_input(Size l, const std::vector<SlotId>& inputs) const {
    const LayerSpec& layer = layers_[l];
    const LayerRow& row = row_of(layer);
    if (row.in_place_of < 0 || row.reads_inputs(layer)) return no_slot;
    const auto i = static_cast<std::size_t>(row.in_place_of);
    const Size producer = layer.inputs[i];
    if (producer == LayerSpec::data || readers_of(producer).size() > 1 ||
        segment_of_[producer] != segment_of_[l])
      return no_slot;
    const bool read_again = row_of(layers_[producer]).reads_output(layers_[producer]);
    const bool same_shape =
        layer.in == layer.out && (!splits_layers_ || layouts_[l].inputs[i] == layouts_[l].output);
    return read_again || !same_shape ? no_slot : inputs[i];
  }

  void forward(Size l) {
    const LayerSpec& layer = layers_[l];
    const LayerRow& row = row_of(layer);
    std::vector<SlotId> inputs;
    const bool again = emit_to_ != &ChunkPass::forward;
    for (std::size_t i = 0; i < layer.inputs.size(); ++i)
      inputs.push_back(again ? input_again(l, i)
                             : in_placement(layer.inputs[i], layouts_[l].inputs[i]));
    made_[l] = add_output(l, layouts_[l].output, replaced_input(l, inputs));
    std::vector<SlotId> writes{made_[l]};
    if (row.kept_columns > 0) {
      const Placement rows = layouts_[l].output.is_shard(0) ? Placement::shard(0) : whole;
      kept_[l] = add_slot(layer.name + ".kept", TensorRole::activation, row.kept_columns, rows);
      writes.push_back(kept_[l]);
    }
    emit({ActionKind::forward, l, 0, std::move(inputs), std::move(writes)});
  }

  void loss() {
    const Size last = size() - 1;
    const SlotId prediction = in_placement(last, whole);
    const SlotId gradient = add_slot(slot(prediction).path + ".gradient", TensorRole::gradient,
                                     slot(prediction).shape[1], whole);
    emit({ActionKind::loss, 0, 0, {prediction, slot_of_y}, {gradient}});
    give(last, {gradient, whole});
  }

  // Backward.

  std::set<Size>& owners(SlotId id) { return owners_[static_cast<std::size_t>(storage_of(id))]; }
  /// Nobody but `layer` still needs what is there.
  bool belongs_to(SlotId id, Size layer) { return owners(id) == std::set<Size>{layer}; }

  void give(Size producer, Contribution contribution) {
    contributions_[producer].push_back(contribution);
    owners(contribution.slot).insert(producer);
  }

  SlotId new_gradient(Size producer, Placement placement, SlotId in_memory_of = no_slot) {
    return add_slot(layers_[producer].name + ".gradient", TensorRole::gradient,
                    layers_[producer].out, placement, in_memory_of);
  }

  void accumulate(SlotId from, SlotId to, bool adds) {
    emit({ActionKind::accumulate, to, 0, {from}, {to}, no_slot, adds});
  }

  /// All contributions in one tensor with the placement that the layer's backward needs.
  SlotId gradient_of(Size l, Placement needed) {
    std::vector<Contribution>& given = contributions_[l];
    if (given.empty())
      throw Error(ExitCode::usage, "model: no layer reads the output of " + layers_[l].name);
    SlotId sum = no_slot;
    for (const Contribution& one : given) {
      SlotId id = one.slot;
      if (!as_needed(id, needed)) {
        const bool in_place =
            one.placement.is_partial() && needed.is_replicate() && belongs_to(id, l);
        id = new_gradient(l, needed, in_place ? id : no_slot);
        redistribute(one.slot, id);
        owners(id).insert(l);
      }
      if (sum == no_slot) {
        sum = id;
      } else {
        sum = owned(l, sum, needed);
        accumulate(id, sum, true);
      }
      if (id != one.slot && storage_of(id) != storage_of(one.slot)) owners(one.slot).erase(l);
    }
    return sum;
  }

  /// `id` if only layer `l` needs it, or a copy of it.
  SlotId owned(Size l, SlotId id, Placement placement) {
    if (belongs_to(id, l)) return id;
    const SlotId copy = new_gradient(l, placement);
    accumulate(id, copy, false);
    owners(id).erase(l);
    owners(copy).insert(l);
    return copy;
  }

  /// An input as forward has read it. One that was redistributed is made again, unless it was the
  /// last one.
  SlotId input_again(Size l, std::size_t i) {
    const Size producer = layers_[l].inputs[i];
    const SlotId raw = made(producer), read = in_placement(producer, layouts_[l].inputs[i]);
    if (storage_of(read) == storage_of(raw) || read == last_input_copy_ ||
        read >= first_of_backward_)
      return read;
    const SlotId again = copy_of(raw, layouts_[l].inputs[i], false);
    redistribute(raw, again);
    return again;
  }

  void backward(Size l) {
    const LayerSpec& layer = layers_[l];
    const LayerRow& row = row_of(layer);
    const SlotId dy = gradient_of(l, layouts_[l].output_gradient);
    contributions_[l].clear();

    const bool weights_apart = has_weights_apart(layer);
    Action action{weights_apart ? ActionKind::backward_inputs : ActionKind::backward, l, 0, {dy}};
    for (std::size_t i = 0; i < layer.inputs.size(); ++i)
      action.reads.push_back(row.reads_inputs(layer) && !weights_apart ? input_again(l, i)
                                                                       : no_slot);
    if (row.kept_columns > 0 && kept_[l] == no_slot) compute_again(l);
    action.reads.push_back(row.reads_output(layer) ? made(l) : no_slot);
    action.reads.push_back(kept_[l]);

    std::vector<Size> passed_to;
    std::optional<std::pair<Size, SlotId>> added;  // a gradient that could not be added to in place
    for (std::size_t i = 0; i < layer.inputs.size(); ++i) {
      const Size producer = layer.inputs[i];
      if (producer == LayerSpec::data || !trains_[producer]) {
        action.writes.push_back(no_slot);
        continue;
      }
      const Placement placement = layouts_[l].input_gradients[i];
      if (row.passes_gradient(layer)) {
        action.writes.push_back(dy);
        passed_to.push_back(producer);
        continue;
      }
      const std::optional<std::size_t> held = find_given(producer, placement);
      const SlotId there = held ? contributions_[producer][*held].slot : no_slot;
      if (held && row.adds_gradient && there != dy && belongs_to(there, producer)) {
        action.adds = true;
        action.writes.push_back(there);
        continue;
      }
      const bool in_place = row.gradient_in_place && belongs_to(dy, l);
      const SlotId dx = new_gradient(producer, placement, in_place ? dy : no_slot);
      action.writes.push_back(dx);
      if (held)
        added = {producer, dx};
      else
        give(producer, {dx, placement});
    }
    const bool wants_inputs = std::any_of(action.writes.begin(), action.writes.end(),
                                          [](SlotId id) { return id != no_slot; });
    if (weights_apart ? wants_inputs : !layer.parameters.empty() || !row.passes_gradient(layer))
      emit(std::move(action));
    if (weights_apart) backward_weights(l, dy);

    for (const Size producer : passed_to) pass_on(producer, dy, layouts_[l].output_gradient);
    if (added) join(added->first, added->second, layouts_[l].input_gradients[0]);
    if (!weights_apart) owners(dy).erase(l);  // else it is read again
  }

  /// Only products are worth putting off; what backward reads of them is the inputs.
  bool has_weights_apart(const LayerSpec& layer) const {
    return input_.splits_backward() && !layer.parameters.empty() &&
           !row_of(layer).products(layer, 1).backward.empty();
  }

  void backward_weights(Size l, SlotId dy) {
    emit_to_ = &ChunkPass::weights;
    Action action{ActionKind::backward_weights, l, 0, {dy}};
    for (std::size_t i = 0; i < layers_[l].inputs.size(); ++i)
      action.reads.push_back(input_again(l, i));
    action.reads.insert(action.reads.end(), {no_slot, kept_[l]});
    action.writes.assign(layers_[l].inputs.size(), no_slot);
    emit(std::move(action));
    emit_to_ = &ChunkPass::backward;
  }

  std::optional<std::size_t> find_given(Size producer, Placement placement) const {
    const std::vector<Contribution>& given = contributions_[producer];
    for (std::size_t c = 0; c < given.size(); ++c)
      if (!splits_layers_ || given[c].placement == placement) return c;
    return std::nullopt;
  }

  void pass_on(Size producer, SlotId dy, Placement placement) {
    if (find_given(producer, placement))
      join(producer, dy, placement);
    else
      give(producer, {dy, placement});
  }

  /// Adds `term` to what the producer has been given with the same placement.
  void join(Size producer, SlotId term, Placement placement) {
    Contribution& held = contributions_[producer][*find_given(producer, placement)];
    held.slot = owned(producer, held.slot, placement);
    accumulate(term, held.slot, true);
  }

  const PlanInput& input_;
  const std::vector<Layout>& layouts_;
  const std::vector<LayerSpec>& layers_;
  Size rows_;
  bool splits_layers_;
  PassPlan pass_;
  std::vector<Action> ChunkPass::*emit_to_ = &ChunkPass::forward;
  std::vector<std::set<Size>> owners_;       ///< by storage: layers whose gradient is there
  std::vector<SlotId> made_, kept_;          ///< by layer
  std::vector<std::vector<SlotId>> copies_;  ///< by layer: its output with other placements
  std::vector<SlotId> copies_of_x_;
  SlotId last_copy_ = no_slot, last_input_copy_ = no_slot;
  static constexpr Size no_segment = -1;
  std::vector<Size> segment_of_;  ///< by layer of the chunk, where it is computed again
  SlotId first_of_backward_ = no_slot;
  std::vector<char> trains_;  ///< by layer: its output depends on parameters
  std::vector<std::vector<Contribution>> contributions_;  ///< by layer
};

}  // namespace

Size first_microbatch_rows(const PlanInput& input) {
  Size parts = 1;
  for (const std::string& axis : batch_axes(input.mesh)) parts *= input.mesh.size_of(axis);
  // The first B mod parts ranks hold one row more than the others, and each splits its own rows:
  // microbatches are balanced over the ranks again.
  const Size extra = input.global_batch % parts;
  const Size base = input.global_batch / parts;
  return extra * balanced_split(base + 1, input.microbatches, 0).count +
         (parts - extra) * balanced_split(base, input.microbatches, 0).count;
}

PassPlan make_passes(const PlanInput& input, const std::vector<Layout>& layouts,
                     const std::vector<Range>& chunks) {
  return PassBuilder(input, layouts).build(chunks);
}

}  // namespace tessera
