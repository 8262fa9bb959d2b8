// SPDX-License-Identifier: Apache-2.0
#include <tessera/nn/layers/layer_row.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/plan/pass/pass_tensors.hpp>

namespace tessera::detail {
namespace {

/// Returns the placements of the scratch for packed messages: along the axis of the call, an
/// all-to-all packs the rank's own rows, other transitions the whole tensor.
Along packed_placements(const Slot& from, const RedistributedBlock& block) {
  Along packed = from.along();
  packed.experts = block.ranks == RankSet::expert ? 0 : from.experts;
  const bool exchanges = transition(block.before, block.after) == Transition::all_to_all;
  if (block.ranks != RankSet::expert)
    (block.ranks == RankSet::model ? packed.model : packed.context) =
        exchanges ? Placement::shard(0) : Placement::replicate();
  return packed;
}

/// Returns the call of a redistribution; none if the transition is local.
std::optional<MoveCall> call_of(const RedistributedBlock& block) {
  const auto operation = operation_of(transition(block.before, block.after));
  if (!operation) return std::nullopt;
  return MoveCall{block.ranks, *operation};
}

}  // namespace

SlotId PassTensors::add(std::string path, TensorRole role, Extent of, Along along,
                        SlotId in_memory_of) {
  return add(std::move(path), role, of, along, type_of(along), in_memory_of);
}

SlotId PassTensors::add(std::string path, TensorRole role, Extent of, Along along, DType type,
                        SlotId in_memory_of) {
  Placements placements = replicated(input_.mesh);
  for (const std::string& axis : batch_axes(input_.mesh))
    placements[*input_.mesh.find(axis)] = Placement::shard(0);
  if (const auto model = input_.mesh.find("model")) placements[*model] = along.model;
  if (const auto context = input_.mesh.find("context")) placements[*context] = along.context;
  Cuts cuts = cuts_of(placements);
  if (const auto expert = input_.mesh.find("expert"); along.experts > 0) {
    std::erase_if(cuts, [&](const Cut& cut) { return cut.axes.front() == *expert; });
    cuts.push_back({1, {*expert}, of.columns / along.experts});
    placements[*expert] = by_columns;
  }
  Slot slot{.path = std::move(path),
            .role = role,
            .shape = {samples_ * of.positions, of.columns},
            .placements = placements,
            .along_model = along.model,
            .type = type,
            .positions = of.positions,
            .experts = along.experts,
            .cuts = std::move(cuts),
            .along_context = along.context};
  if (in_memory_of != no_slot) {
    slot.storage = storage_of(in_memory_of);
  } else if (role != TensorRole::batch) {
    const Size elements = num_elements(local_shape(slot, along, samples_of_first(), first_));
    slot.storage = static_cast<Size>(pass_.storages.size());
    pass_.storages.push_back({elements * size_of(slot.type)});
  }
  pass_.slots.push_back(std::move(slot));
  return next_slot() - 1;
}

/// Returns the placements between two that differ along several axes. `expert` splits what the
/// other axes leave, and `model` splits the rows of a share of positions; so the one that splits
/// further comes last, and goes first.
Along PassTensors::halfway(const Along& before, const Along& after) const {
  const bool moves_columns = splits_layers() && before.model != after.model,
             moves_positions = splits_positions() && before.context != after.context;
  Along between = after;
  if (before.experts != after.experts && (moves_columns || moves_positions)) {
    between = before.experts > 0 ? before : after;
    between.experts = 0;
  } else if (moves_columns && moves_positions) {
    between = before.context.is_shard(0) ? before : after;
    between.model = before.context.is_shard(0) ? after.model : before.model;
  }
  return between;
}

void PassTensors::redistribute(SlotId from, SlotId to, bool may_overwrite) {
  const Along before = slot(from).along(), after = slot(to).along();
  if (slot(from).type != slot(to).type) {
    const Slot like = slot(to);
    const bool in_place =
        may_overwrite && after.model.is_replicate() && differ_along_model(before, after);
    const SlotId sum = add(like.path + ".sum", like.role, extent_of(like), after, slot(from).type,
                           in_place ? from : no_slot);
    redistribute(from, sum, may_overwrite);
    return accumulate(sum, to, false);
  }
  if (const Along between = halfway(before, after); !alike(between, after)) {
    const bool in_place = between.model.is_partial() && after.model.is_replicate() &&
                          differ_along_model(between, after);
    const SlotId middle = add(slot(to).path + ".moved", slot(to).role, extent_of(slot(to)), between,
                              slot(from).type, in_place ? to : no_slot);
    redistribute(from, middle, false);
    return redistribute(middle, to, true);
  }
  const RedistributedBlock block =
      redistributed_block(slot(from), after, samples_of_first(), first_);
  SlotId scratch = no_slot;
  if (packed_elements(block.before, block.after, block.shape, block.num_ranks, 0) > 0)
    scratch = add(slot(to).path + ".packed", TensorRole::scratch, extent_of(slot(to)),
                  packed_placements(slot(from), block), slot(from).type);
  emit(Move{from, to, scratch, call_of(block)});
}

bool PassTensors::rings(const LayerSpec& layer) const {
  return splits_positions() && !row_of(layer).expression.streamed.empty() &&
         input_.context_attention == ContextAttention::ring;
}

SlotId PassTensors::add_shifted(SlotId keys, TensorRole role, Size shift) {
  const Slot like = slot(keys);
  const bool is_gradient = role == TensorRole::gradient;
  const SlotId id = add(like.path + (is_gradient ? ".gradient" : ""), role, extent_of(like),
                        like.along(), is_gradient ? input_.state_type : like.type);
  pass_.slots.back().shift = shift % ring_size();
  return id;
}

void PassTensors::pass_on(SlotId from, SlotId to, Phase phase) {
  for (const bool sends : {false, true})
    emit(Message{.sends = sends,
                 .tensor = sends ? from : to,
                 .ranks = RankSet::context,
                 .tag = to,
                 .phase = phase});
}

void PassTensors::accumulate(SlotId from, SlotId to, bool adds) {
  emit(Accumulate{from, to, adds});
}

}  // namespace tessera::detail
