// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/nn/layers/layer_row.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/plan/pass/forward_pass.hpp>
#include <tessera/plan/pipeline/stages.hpp>

namespace tessera::detail {

void ForwardPass::add_batch() {
  const DType type = input_.state_type;
  const ModelSpec& model = input_.model;
  tensors_.add("batch/x", TensorRole::batch, extent_of_x(), tensors_.placed({}), type);
  tensors_.add("batch/y", TensorRole::batch, {model.output_positions(), model.target_width()},
               tensors_.placed({}), type);
}

/// Converts x, which has the state type, if a layer reads it in another compute type.
void ForwardPass::convert_x(Range layers) {
  x_ = slot_of_x;
  const auto begin = layers_.begin() + layers.begin;
  const bool is_read = std::any_of(begin, begin + layers.count, [](const LayerSpec& layer) {
    return !row_of(layer).reads_exact_x &&
           std::count(layer.inputs.begin(), layer.inputs.end(), LayerSpec::data) > 0;
  });
  if (!is_read || !input_.has_copies()) return;
  x_ = tensors_.add("x", TensorRole::activation, extent_of_x(), tensors_.placed({}));
  tensors_.accumulate(slot_of_x, x_, false);
}

/// Numbers the segments of the chunk. The last segment of the model is not recomputed: its values
/// are read at once, so dropping them saves nothing.
void ForwardPass::find_segments(Range layers) {
  segment_of_.assign(layers_.size(), no_segment);
  if (input_.activation_checkpointing.units == 0) return;
  Size units = 0;
  for (const Range& unit : units_of(layers_)) {
    if (unit.begin < layers.begin || unit.begin >= layers.end()) continue;
    const Size segment = units++ / input_.activation_checkpointing.units;
    for (Size l = unit.begin; l < unit.end(); ++l) segment_of_[l] = segment;
  }
  if (const Size last = segment_of_[size() - 1]; layers.end() == size())
    std::replace(segment_of_.begin(), segment_of_.end(), last, no_segment);
}

/// Recomputes a layer. The actions go to the backward list, also if the caller emits gradients of
/// weights.
void ForwardPass::compute_again(Size l) {
  const PassTensors::List before = tensors_.emit_to(&ChunkPass::backward);
  lower_layer(l);
  tensors_.emit_to(before);
}

std::vector<Size> ForwardPass::crossing(Size boundary) const {
  std::vector<Size> crossing;
  for (Size l = 0; l < boundary && boundary < size(); ++l)
    if (first_reader(l, boundary)) crossing.push_back(l);
  return crossing;
}

/// Returns the placements in which the first layer from `boundary` on reads the output of
/// `producer`; nullptr if none does.
const Placements* ForwardPass::first_reader(Size producer, Size boundary) const {
  for (Size l = boundary; l < size(); ++l)
    for (std::size_t i = 0; i < layers_[l].inputs.size(); ++i)
      if (layers_[l].inputs[i] == producer) return &at_[l].inputs[i];
  return nullptr;
}

const Placements& ForwardPass::sent_placement(Size producer, Size boundary) const {
  const Placements& made = at_[producer].output;
  return tensors_.are_terms(made) ? *first_reader(producer, boundary) : made;
}

Size ForwardPass::tag_of(Size producer, Size boundary, bool gradient) const {
  return (boundary * size() + producer) * 2 + (gradient ? 1 : 0);
}

/// Returns the placements in which layers and the loss read an output.
std::vector<const Placements*> ForwardPass::readers_of(Size producer) const {
  std::vector<const Placements*> readers;
  for (Size l = 0; l < size(); ++l)
    for (std::size_t i = 0; i < layers_[l].inputs.size(); ++i)
      if (layers_[l].inputs[i] == producer) readers.push_back(&at_[l].inputs[i]);
  if (producer == size() - 1) readers.push_back(&of_loss_);
  return readers;
}

SlotId ForwardPass::made(Size producer) {
  if (producer == LayerSpec::data) return x_;
  if (made_[producer] == no_slot) compute_again(producer);
  return made_[producer];
}

/// Returns the output of `producer` with the placement that a reader needs.
SlotId ForwardPass::in_placement(Size producer, const Placements& needed) {
  const SlotId raw = made(producer);
  if (tensors_.as_needed(raw, needed)) return raw;
  auto& copies = producer == LayerSpec::data ? copies_of_x_ : copies_[producer];
  for (const SlotId copy : copies)
    if (tensors_.as_needed(copy, needed)) return copy;
  const std::vector<const Placements*> readers = readers_of(producer);
  const bool is_partial = tensors_.are_terms(tensors_.slot(raw).placements);
  const bool all_need_it =
      std::all_of(readers.begin(), readers.end(), [&](auto* reader) { return *reader == needed; });
  const bool in_place = all_need_it && is_sum(tensors_.slot(raw).placements, needed);
  const bool same_memory = in_place && tensors_.type_of(needed) == tensors_.slot(raw).type;
  // An earlier redistribution of a sum may have overwritten its terms.
  const bool is_summed = is_partial && !copies.empty();
  const SlotId copy = copy_of(raw, needed, same_memory ? raw : no_slot);
  tensors_.redistribute(is_summed ? copies.front() : raw, copy, in_place);
  copies.push_back(copy);
  if (!in_place) last_copy_ = copy;
  return copy;
}

SlotId ForwardPass::add_output(Size l, const Placements& placements, SlotId in_memory_of) {
  return tensors_.add(layers_[l].name, TensorRole::activation, PassTensors::output_of(layers_[l]),
                      placements, in_memory_of);
}

SlotId ForwardPass::copy_of(SlotId raw, const Placements& needed, SlotId in_memory_of) {
  return tensors_.add(tensors_.slot(raw).path, TensorRole::activation,
                      PassTensors::extent_of(tensors_.slot(raw)), needed, in_memory_of);
}

/// Returns the input whose memory the output of layer `l` reuses, or no_slot if the input is read
/// again.
SlotId ForwardPass::replaced_input(Size l, const std::vector<SlotId>& inputs) const {
  const LayerSpec& layer = layers_[l];
  const LayerRow& row = row_of(layer);
  if (row.in_place_of < 0 || row.reads_inputs(layer)) return no_slot;
  const auto i = static_cast<std::size_t>(row.in_place_of);
  const Size producer = layer.inputs[i];
  if (producer == LayerSpec::data || readers_of(producer).size() > 1 ||
      segment_of_[producer] != segment_of_[l])
    return no_slot;
  const bool read_again = row_of(layers_[producer]).reads_output(layers_[producer]);
  const bool same_shape = layer.in() == layer.out() && layer.positions_of(0) == layer.positions() &&
                          at_[l].inputs[i] == at_[l].output;
  return read_again || !same_shape ? no_slot : inputs[i];
}

void ForwardPass::lower_layer(Size l) {
  const LayerSpec& layer = layers_[l];
  const LayerRow& row = row_of(layer);
  std::vector<SlotId> inputs;
  const bool recomputes = !tensors_.emits_to(&ChunkPass::forward);
  for (std::size_t i = 0; i < layer.inputs.size(); ++i)
    inputs.push_back(recomputes ? input_again(l, i)
                                : in_placement(layer.inputs[i], at_[l].inputs[i]));
  made_[l] = add_output(l, at_[l].output, replaced_input(l, inputs));
  if (const Size columns = row.saved_columns(layer); columns > 0)
    saved_[l] = tensors_.add(layer.name + ".saved", TensorRole::activation,
                             {layer.positions(), columns}, at_[l].output, input_.state_type);
  Forward forward{{.layer = l, .inputs = std::move(inputs), .output = made_[l], .saved = saved_[l]},
                  recomputes};
  tensors_.rings(layer) ? lower_ring(std::move(forward)) : tensors_.emit(std::move(forward));
}

/// Emits a layer part by part. While a part is computed, its keys and values go on to the next
/// rank.
void ForwardPass::lower_ring(Forward forward) {
  forward.ring_sums = ring_sums(forward.layer);
  SlotId& now = forward.inputs.back();
  for (forward.ring_part = 0; forward.ring_part < tensors_.ring_size(); ++forward.ring_part) {
    const SlotId held = now;
    const bool goes_on = forward.ring_part + 1 < tensors_.ring_size();
    const SlotId next =
        goes_on ? tensors_.add_shifted(held, TensorRole::activation, forward.ring_part + 1)
                : no_slot;
    if (goes_on) tensors_.pass_on(held, next, Phase::start);
    tensors_.emit(forward);
    if (goes_on) tensors_.pass_on(held, next, Phase::finish);
    now = next;
  }
}

SlotId ForwardPass::ring_sums(Size l) {
  if (!input_.has_copies()) return no_slot;
  return tensors_.add(layers_[l].name + ".sums", TensorRole::scratch,
                      PassTensors::output_of(layers_[l]), at_[l].output, input_.state_type);
}

SlotId ForwardPass::input_again(Size l, std::size_t i) {
  const Size producer = layers_[l].inputs[i];
  const SlotId raw = made(producer), read = in_placement(producer, at_[l].inputs[i]);
  const bool is_raw = tensors_.storage_of(read) == tensors_.storage_of(raw);
  // The sum may have replaced its terms and cannot be formed again.
  const bool is_sum = tensors_.are_terms(tensors_.slot(raw).placements);
  // No layer reads what another one has sent to ranks of `expert`, so only the copy is kept.
  const bool is_exchanged = tensors_.slot(raw).by_expert != tensors_.slot(read).by_expert;
  const bool is_saved = read == last_input_copy_ || read >= first_of_backward_;
  if (is_raw || is_sum || is_exchanged || is_saved) return read;
  const SlotId again = copy_of(raw, at_[l].inputs[i]);
  tensors_.redistribute(raw, again, false);
  return again;
}

/// Lowers the loss. If ranks split the columns, or sums over columns have a fixed order, each rank
/// computes terms of blocks of columns, which are gathered first. Ranks with parts of samples add
/// up the terms of norms.
SlotId ForwardPass::lower_loss() {
  const SlotId prediction = in_placement(size() - 1, of_loss());
  const SlotId gradient =
      tensors_.add(tensors_.slot(prediction).path + ".gradient", TensorRole::gradient,
                   PassTensors::extent_of(tensors_.slot(prediction)), of_loss());
  Loss loss{.prediction = prediction, .gradient = gradient};
  const Size blocks = softmax_blocks(input_);
  const bool splits_columns = placement_along("model", of_loss(), input_.mesh).is_shard();
  if (splits_columns || blocks > 1) {
    const Extent terms{tensors_.slot(prediction).positions(),
                       3 * std::max(blocks, splits_columns ? input_.mesh.size_of("model") : 1)};
    const auto add_terms = [&](const Placements& placements) {
      return tensors_.add("loss/terms", TensorRole::activation, terms, placements,
                          input_.state_type);
    };
    const SlotId own = add_terms(of_loss());
    const SlotId all = splits_columns ? add_terms(tensors_.placed({})) : own;
    tensors_.emit(PartialLoss{prediction, own});
    if (own != all) tensors_.redistribute(own, all, false);
    loss.terms = all;
  }
  if (input_.loss == LossKind::relative_l2 && input_.mesh.size_of("context") > 1) {
    const auto add_terms = [&](Placement context, SlotId in_memory_of) {
      return tensors_.add("loss/terms", TensorRole::activation, {1, 2},
                          tensors_.placed({}, context), input_.state_type, in_memory_of);
    };
    const SlotId own = add_terms(as_terms, no_slot), all = add_terms({}, own);
    tensors_.emit(PartialLoss{prediction, own});
    tensors_.redistribute(own, all, true);
    loss.terms = all;
  }
  tensors_.emit(loss);
  return gradient;
}

SlotId ForwardPass::saved(Size layer) {
  if (row_of(layers_[layer]).saved_columns(layers_[layer]) > 0 && saved_[layer] == no_slot)
    compute_again(layer);
  return saved_[layer];
}

SlotId ForwardPass::lower(Range layers) {
  find_segments(layers);
  made_.assign(layers_.size(), no_slot);
  saved_.assign(layers_.size(), no_slot);
  copies_.assign(layers_.size(), {});
  copies_of_x_.clear();
  last_copy_ = no_slot;
  tensors_.begin_chunk();
  convert_x(layers);
  for (const Size l : crossing(layers.begin))
    tensors_.chunk().inputs.push_back({made_[l] = add_output(l, sent_placement(l, layers.begin)),
                                       tag_of(l, layers.begin, false)});
  for (Size l = layers.begin; l < layers.end(); ++l) lower_layer(l);
  for (const Size l : crossing(layers.end()))
    tensors_.chunk().outputs.push_back(
        {in_placement(l, sent_placement(l, layers.end())), tag_of(l, layers.end(), false)});
  last_input_copy_ = last_copy_;
  return layers.end() == size() ? lower_loss() : no_slot;
}

void ForwardPass::begin_backward(Range layers) {
  tensors_.emit_to(&ChunkPass::backward);
  first_of_backward_ = tensors_.next_slot();
  for (Size l = layers.begin; l < layers.end(); ++l) {
    if (segment_of_[l] == no_segment) continue;
    saved_[l] = no_slot;
    // Outputs that later segments read stay. made() recomputes the others.
    bool is_saved = false;
    for (Size reader = l + 1; reader < layers.end(); ++reader) {
      const std::vector<Size>& inputs = layers_[reader].inputs;
      is_saved = is_saved || (segment_of_[reader] != segment_of_[l] &&
                              std::find(inputs.begin(), inputs.end(), l) != inputs.end());
    }
    if (is_saved) continue;
    made_[l] = no_slot;
    copies_[l].clear();
  }
}

}  // namespace tessera::detail
