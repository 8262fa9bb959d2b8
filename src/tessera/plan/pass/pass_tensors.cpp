// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/plan/pass/pass_tensors.hpp>
#include <tessera/tensor/redistribute_plan.hpp>
#include <tessera/tensor/transition.hpp>

namespace tessera::detail {
bool is_sum(const Placements& terms, const Placements& whole) {
  for (std::size_t axis = 0; axis < terms.size(); ++axis)
    if (terms[axis] != whole[axis] && !(terms[axis].is_partial() && whole[axis].is_replicate()))
      return false;
  return terms != whole;
}

bool are_terms(const Placements& placements) {
  return std::any_of(placements.begin(), placements.end(),
                     [](const Placement& placement) { return placement.is_partial(); });
}

PassTensors::PassTensors(const PlanInput& input)
    : input_(input),
      batch_axes_(batch_axes(input.mesh)),
      samples_(first_microbatch_samples(input)),
      most_samples_(input, input.batch_size, 0) {
  Size positions = input.model.input_positions;
  for (const LayerSpec& layer : input.model.layers) {
    positions = std::max({positions, layer.positions_of(0), layer.positions()});
    experts_ = std::max(experts_, layer.experts());
  }
  if (positions > 1) columns_ = 2;
}

Placements PassTensors::placed(Placement model, Placement context) const {
  return placed_by([&](const AxisRow& row) {
    if (row.splits("batch")) return by_rows;
    if (input_.mesh.size_of(row.name) == 1) return Placement::replicate();
    return row.name == "model" ? model : row.splits("positions") ? context : Placement::replicate();
  });
}

/// Returns the cuts of a tensor: samples by the axes of the batch, positions, rows as one, columns.
Cuts PassTensors::cuts(const Placements& placements, Extent of, AxisSet batch) const {
  Cuts cuts;
  Split positions;  // over `context`, if rows of them are cut in blocks
  const auto add = [&](AxisSet axes, bool of_columns, std::size_t joined = 1) {
    for (const std::size_t axis : axes) {
      if (!placements[axis].is_shard()) continue;
      const int dimension = placements[axis].dim();
      if ((dimension == columns_) != of_columns) continue;
      const Size unit = of_columns && batch_axes_.contains(axis) ? of.columns / experts_
                                                                 : placements[axis].unit();
      cuts.push_back({static_cast<std::size_t>(dimension),
                      {axis},
                      unit,
                      joined,
                      0,
                      placements[axis].repeats(),
                      placements[axis].blocks(),
                      joined > 1 && placements[axis].blocks() > 0 ? positions : Split{}});
    }
  };
  const AxisSet model = input_.mesh.axes_named({"model"}),
                context = input_.mesh.axes_named({"context"});
  add(batch, false);
  add(context, false);
  if (!cuts.empty() && cuts.back().axes == context)
    positions = {of.positions, input_.mesh.group_size(context), 1, input_.zigzag,
                 cuts.back().blocks};
  add(model, false, static_cast<std::size_t>(columns_));
  for (const AxisSet axes : {model, batch_axes_, context}) add(axes, true);
  return cuts;
}

Size PassTensors::bytes_of(Slot slot) const {
  for (Cut& cut : slot.cuts) cut.shift = 0;
  const Size samples = most_samples_.in(0, slot.sample_axes);
  const Shape shape = local_shape(slot, samples, input_.mesh, 0);
  Size elements = num_elements(shape);
  for (const Cut& cut : slot.cuts) {
    const Size positions = cut.positions.units, own = cut.positions.count(0);
    if (positions == 0) continue;
    // The largest number of rows that a rank can hold among so many neighbours.
    const Size rows =
        Split{samples * positions, input_.mesh.group_size(cut.axes), 1, false, cut.blocks}.count(0);
    elements = (rows / positions * own + std::min(own, rows % positions)) * shape.back();
  }
  return elements * size_of(slot.type);
}

SlotId PassTensors::add(std::string path, TensorRole role, Extent of,
                        const Placements& placements) {
  const bool along_model = input_.model_reduce_dtype == ModelReduceType::compute &&
                           placement_along("model", placements, input_.mesh).is_partial();
  return add(std::move(path), role, of, placements,
             are_terms(placements) && !along_model ? input_.state_type : input_.compute_type);
}

SlotId PassTensors::add(std::string path, TensorRole role, Extent of, const Placements& placements,
                        DType type) {
  Slot slot{.path = std::move(path),
            .role = role,
            .shape = {samples_, of.columns},
            .placements = placements,
            .type = type,
            .cuts = cuts(placements, of, batch_axes_)};
  if (columns_ == 2) slot.shape.insert(slot.shape.begin() + 1, of.positions);
  for (const std::size_t axis : batch_axes_)
    if (placements[axis].is_shard(0)) slot.sample_axes = slot.sample_axes | AxisSet{axis};
  pass_.slots.push_back(std::move(slot));
  return next_slot() - 1;
}

void PassTensors::redistribute(SlotId from, SlotId to) {
  const Slot before = slot(from), after = slot(to);
  if (before.type != after.type) {
    const SlotId sum =
        add(after.path + ".sum", after.role, extent_of(after), after.placements, before.type);
    redistribute(from, sum);
    return accumulate(sum, to, false);
  }
  // Batch axes are left out: ranks with different samples never exchange rows here.
  const AxisSet apart = before.sample_axes & after.sample_axes;
  Shape shape = after.shape;
  // The steps are those of one sample on each rank, so that a smaller last batch takes the same.
  shape[0] = input_.mesh.group_size(batch_axes_ - apart);
  Placements now = before.placements;
  for (const RedistributeStep& step : plan_redistribute(
           shape, now, after.placements, input_.mesh, 0,
           [&](const Placements& p) { return cuts(p, extent_of(after), batch_axes_ - apart); })) {
    now[step.axis] = step.to;
    const SlotId next = now == after.placements ? to
                                                : add(after.path + ".moved", after.role,
                                                      extent_of(after), now, before.type);
    move(std::exchange(from, next), next, step.axis);
  }
}

void PassTensors::move(SlotId from, SlotId to, std::size_t axis) {
  const Size samples = most_samples_.in(0, slot(from).sample_axes & slot(to).sample_axes);
  const MovedBlock block =
      moved_block(slot(from), slot(to), axis, samples, most_samples_.filled(0), input_.mesh, 0);
  const Transition made = transition(block.before, block.after);
  SlotId scratch = no_slot;
  if (packed_elements(block.before, block.after, block.shape, input_.mesh.axes()[axis].size, 0) >
      0) {
    // An all-to-all packs the rank's own rows, other transitions the whole tensor.
    Placements packed = slot(from).placements;
    if (made != Transition::all_to_all)
      packed[axis] = Placement::replicate();
    else if (packed[axis].is_shard(columns_))
      packed[axis] = slot(to).placements[axis];
    scratch = add(slot(to).path + ".packed", TensorRole::scratch, extent_of(slot(to)), packed,
                  slot(from).type);
  }
  emit(Move{from, to, scratch, axis, operation_of(made)});
}

bool PassTensors::rings(const LayerSpec& layer) const {
  return ring_size() > 1 && !layer.kind->expression.streamed.empty() &&
         input_.context_attention == ContextAttention::ring;
}

SlotId PassTensors::add_shifted(SlotId keys, TensorRole role, Size shift) {
  const Slot like = slot(keys);
  const bool is_gradient = role == TensorRole::gradient;
  const SlotId id = add(like.path + (is_gradient ? ".gradient" : ""), role, extent_of(like),
                        like.placements, is_gradient ? input_.state_type : like.type);
  for (Cut& cut : pass_.slots.back().cuts)
    if (cut.axes == input_.mesh.axes_named({"context"})) cut.shift = shift % ring_size();
  return id;
}

void PassTensors::pass_on(SlotId from, SlotId to, Phase phase, std::string_view axis) {
  for (const bool sends : {false, true})
    emit(Message{.sends = sends,
                 .tensor = sends ? from : to,
                 .ranks = input_.mesh.axes_named({axis}),
                 .tag = to,
                 .phase = phase});
}

}  // namespace tessera::detail
