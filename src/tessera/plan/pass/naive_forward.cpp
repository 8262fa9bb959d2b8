// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/plan/pass/naive_pass.hpp>

namespace tessera::detail {

NaivePass::NaivePass(const PlanInput& input, const std::vector<LayerPlacements>& layers)
    : PassTensors(input),
      layers_(input.model.layers),
      of_loss_(placed(loss_placement(input, layers))),
      blocks_of_loss_(input.loss == LossKind::cross_entropy ? layers.back().columns[1].blocks : 0) {
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const auto all = [&](const auto& placement_of) {
      return placed_by(
          [&](const AxisRow& axis) { return placement_of(layers[l].along(axis.name)); });
    };
    PlacedLayer& at = at_.emplace_back();
    at.output = all([](const Layout& along) { return along.output; });
    at.output_gradient = all([](const Layout& along) { return along.output_gradient; });
    for (std::size_t i = 0; i < layers_[l].inputs.size(); ++i) {
      at.inputs.push_back(all([&](const Layout& along) { return along.inputs[i]; }));
      at.input_gradients.push_back(
          all([&](const Layout& along) { return along.input_gradients[i]; }));
    }
    const std::vector<Size>& inputs = layers_[l].inputs;
    needs_gradient_.push_back(layers_[l].uses_parameters() ||
                              std::any_of(inputs.begin(), inputs.end(), [&](Size i) {
                                return i != LayerSpec::data && needs_gradient_[i];
                              }));
  }
  const ModelSpec& model = input.model;
  add("batch/x", TensorRole::batch, extent_of_x(), placed({}), input.state_type);
  add("batch/y", TensorRole::batch, {model.output_positions(), model.target_width()}, placed({}),
      input.state_type);
}

void NaivePass::lower(Range layers) {
  begin_chunk();
  made_.assign(layers_.size(), no_slot);
  saved_ = made_;
  copies_.assign(layers_.size(), {});
  contributions_ = copies_;
  copies_of_x_.clear();
  makings_.clear();
  forward(layers);
  backward(layers);
}

/// Emits the layers. The last chunk of the model ends with the loss.
void NaivePass::forward(Range layers) {
  convert_x(layers);
  for (const Size l : crossing(layers.begin))
    chunk().inputs.push_back({made_[l] = add_output(l, sent_placement(l, layers.begin)),
                              tag_of(l, layers.begin, false)});
  for (Size l = layers.begin; l < layers.end(); ++l) forward_layer(l);
  for (const Size l : crossing(layers.end()))
    chunk().outputs.push_back(
        {in_placement(l, sent_placement(l, layers.end())), tag_of(l, layers.end(), false)});
  last_copy_ = no_slot;
  for (const Making& made : makings_)
    if (const SlotId copy = made.slots.begin; made.layer == Making::no_layer)
      if (!is_sum(slot(made.source).placements, slot(copy).placements)) last_copy_ = copy;
  if (layers.end() == size()) contributions_.back().push_back(loss());
}

/// Converts x, which has the state type, if a layer reads it in another compute type.
void NaivePass::convert_x(Range layers) {
  x_ = slot_of_x;
  const auto begin = layers_.begin() + layers.begin;
  const bool is_read = std::any_of(begin, begin + layers.count, [](const LayerSpec& layer) {
    return !reads_classes(layer) &&
           std::count(layer.inputs.begin(), layer.inputs.end(), LayerSpec::data) > 0;
  });
  if (!is_read || !input_.has_copies()) return;
  x_ = add("x", TensorRole::activation, extent_of_x(), placed({}));
  accumulate(slot_of_x, x_, false);
}

/// Returns the layers before `boundary` whose outputs layers from `boundary` on read.
std::vector<Size> NaivePass::crossing(Size boundary) const {
  std::vector<Size> crossing;
  for (Size l = 0; l < boundary && boundary < size(); ++l)
    if (first_reader(l, boundary)) crossing.push_back(l);
  return crossing;
}

/// Returns the placements in which the first layer from `boundary` on reads the output of
/// `producer`; nullptr if none does.
const Placements* NaivePass::first_reader(Size producer, Size boundary) const {
  for (Size l = boundary; l < size(); ++l)
    for (std::size_t i = 0; i < layers_[l].inputs.size(); ++i)
      if (layers_[l].inputs[i] == producer) return &at_[l].inputs[i];
  return nullptr;
}

const Placements& NaivePass::sent_placement(Size producer, Size boundary) const {
  const Placements& made = at_[producer].output;
  return are_terms(made) ? *first_reader(producer, boundary) : made;
}

/// Returns the tag of a message with the output of `producer`, or its gradient, across `boundary`.
Size NaivePass::tag_of(Size producer, Size boundary, bool gradient) const {
  return (boundary * size() + producer) * 2 + (gradient ? 1 : 0);
}

/// Returns the output of `producer` with the placement that a reader needs. Each is made once. The
/// first redistribution of terms is their sum, from which the others start.
SlotId NaivePass::in_placement(Size producer, const Placements& needed) {
  const bool is_data = producer == LayerSpec::data;
  const SlotId raw = is_data ? x_ : made_[producer];
  if (slot(raw).placements == needed) return raw;
  std::vector<SlotId>& copies = is_data ? copies_of_x_ : copies_[producer];
  for (const SlotId copy : copies)
    if (slot(copy).placements == needed) return copy;
  const bool is_summed = are_terms(slot(raw).placements) && !copies.empty();
  Making made{.slots = {next_slot(), 0}, .source = raw};
  made.actions.begin = num_emitted();
  copies.push_back(add(slot(raw).path, TensorRole::activation, extent_of(slot(raw)), needed));
  redistribute(is_summed ? copies.front() : raw, copies.back());
  made.slots.count = next_slot() - made.slots.begin;
  made.actions.count = num_emitted() - made.actions.begin;
  makings_.push_back(made);
  return made.slots.begin;
}

SlotId NaivePass::add_output(Size l, const Placements& placements) {
  return add(layers_[l].name, TensorRole::activation, output_of(layers_[l]), placements);
}

void NaivePass::forward_layer(Size l) {
  const LayerSpec& layer = layers_[l];
  std::vector<SlotId> inputs;
  for (std::size_t i = 0; i < layer.inputs.size(); ++i)
    inputs.push_back(in_placement(layer.inputs[i], at_[l].inputs[i]));
  Making made{.layer = l, .slots = {next_slot(), 0}};
  made.actions.begin = num_emitted();
  made_[l] = add_output(l, at_[l].output);
  if (const Size columns = layer.kind->saved_columns(layer); columns > 0) {
    Placements saved = at_[l].output;
    for (Placement& along : saved)  // as many units of columns as the output has
      if (along.blocks() > 0 && along.is_shard(columns_))
        along = along.in_units(along.unit() * columns / layer.out());
    saved_[l] = add(layer.name + ".saved", TensorRole::activation, {layer.positions(), columns},
                    saved, input_.state_type);
  }
  Forward forward{
      {.layer = l, .inputs = std::move(inputs), .output = made_[l], .saved = saved_[l]}};
  if (rings(layer))
    forward_ring(std::move(forward));
  else
    emit(std::move(forward));
  made.slots.count = next_slot() - made.slots.begin;
  made.actions.count = num_emitted() - made.actions.begin;
  makings_.push_back(made);
}

/// Emits a layer part by part. While a part is computed, its keys and values go on to the next
/// rank.
void NaivePass::forward_ring(Forward forward) {
  forward.ring_sums = ring_sums(forward.layer);
  SlotId& now = forward.inputs.back();
  for (forward.ring_part = 0; forward.ring_part < ring_size(); ++forward.ring_part) {
    const SlotId held = now;
    const bool goes_on = forward.ring_part + 1 < ring_size();
    const SlotId next =
        goes_on ? add_shifted(held, TensorRole::activation, forward.ring_part + 1) : no_slot;
    if (goes_on) pass_on(held, next, Phase::start);
    emit(forward);
    if (goes_on) pass_on(held, next, Phase::finish);
    now = next;
  }
}

/// Returns a slot for the unrounded sums of a layer in a ring; no_slot if its output is not
/// rounded.
SlotId NaivePass::ring_sums(Size l) {
  if (!input_.has_copies()) return no_slot;
  return add(layers_[l].name + ".sums", TensorRole::scratch, output_of(layers_[l]), at_[l].output,
             input_.state_type);
}

/// Emits the loss and returns the gradient of the prediction. If ranks split the columns, or sums
/// over columns have a fixed order, each rank computes terms of blocks of columns, which are
/// gathered first. Ranks with parts of samples add up the terms of norms.
SlotId NaivePass::loss() {
  const SlotId prediction = in_placement(size() - 1, of_loss_);
  const SlotId gradient = add(slot(prediction).path + ".gradient", TensorRole::gradient,
                              extent_of(slot(prediction)), of_loss_);
  SlotId terms = no_slot;
  const auto add_terms = [&](Extent extent, const Placements& own, const Placements& all) {
    const auto tensor = [&](const Placements& placements) {
      return add("loss/terms", TensorRole::activation, extent, placements, input_.state_type);
    };
    const SlotId own_terms = terms = tensor(own);
    emit(PartialLoss{prediction, own_terms});
    if (own == all) return;
    terms = tensor(all);
    redistribute(own_terms, terms);
  };
  const bool splits_columns = placement_along("model", of_loss_, input_.mesh).is_shard();
  if (splits_columns || blocks_of_loss_ > 0) {
    Placements own = of_loss_;
    for (const std::size_t axis : input_.mesh.axes_named({"model"}))
      own[axis] = own[axis].in_units(3);
    add_terms({slot(prediction).positions(),
               3 * (blocks_of_loss_ > 0 ? blocks_of_loss_ : input_.mesh.size_of("model"))},
              own, splits_columns ? placed({}) : own);
  }
  const Size sums = input_.position_blocks(input_.model.output_positions());
  if (input_.loss == LossKind::relative_l2 && (sums > 0 || input_.mesh.size_of("context") > 1))
    add_terms({1, 2 * std::max<Size>(1, sums)}, placed({}, as_terms), placed({}, Placement()));
  emit(Loss{.prediction = prediction, .terms = terms, .gradient = gradient});
  return gradient;
}

}  // namespace tessera::detail
