// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/grains.hpp>
#include <tessera/plan/pass/pass_tensors.hpp>

namespace tessera::detail {
namespace {

/// Returns the placement along `model` of the scratch for packed messages. An all-to-all packs its
/// part of the rows, other transitions the whole tensor.
Placement packed_placement(Placement before, Placement after) {
  return transition(before, after) == Transition::all_to_all ? Placement::shard(0)
                                                             : Placement::replicate();
}

/// Returns the call that changes the placement of a tensor along `model` or `context`; none if the
/// transition is local. No rank holds the full buffer of an all-to-all, so its payload is the
/// rank's own block.
std::optional<ActionCall> call_between(const Slot& from, Along after, bool moves_positions) {
  const Transition change = moves_positions ? transition(from.along_context, after.context)
                                            : transition(from.along_model, after.model);
  const std::optional<Operation> operation = operation_of(change);
  if (!operation) return std::nullopt;
  return ActionCall{moves_positions ? RankSet::context : RankSet::model, *operation,
                    change == Transition::all_to_all ? Payload::own_tensor : Payload::tensor,
                    from.type, content_of(from)};
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
  Slot slot{.path = std::move(path),
            .role = role,
            .shape = {samples_ * of.positions, of.columns},
            .placements = placements,
            .along_model = along.model,
            .type = type,
            .positions = of.positions,
            .along_context = along.context};
  if (in_memory_of != no_slot) {
    slot.storage = storage_of(in_memory_of);
  } else if (role != TensorRole::batch) {
    const Size samples = microbatch_samples(input_, 0, 0).count;
    const Size elements = num_elements(local_shape(slot, along, samples, first_));
    slot.storage = static_cast<Size>(pass_.storages.size());
    pass_.storages.push_back({elements * size_of(slot.type)});
  }
  pass_.slots.push_back(std::move(slot));
  return next_slot() - 1;
}

/// Returns the number of elements that the first rank packs for a redistribution.
Size PassTensors::packed(const Slot& from, Along after) const {
  const Size samples = microbatch_samples(input_, 0, 0).count;
  const RedistributedBlock block = redistributed_block(from, after, samples, first_);
  return packed_elements(block.before, block.after, block.shape,
                         block.ranks == RankSet::model ? first_.model_ranks : first_.context_ranks,
                         0);
}

void PassTensors::redistribute(SlotId from, SlotId to, bool may_overwrite) {
  if (slot(from).type != slot(to).type) {
    const Slot like = slot(to);
    const bool in_place = may_overwrite && like.along_model.is_replicate() &&
                          like.along_context == slot(from).along_context;
    const SlotId sum = add(like.path + ".sum", like.role, extent_of(like), like.along(),
                           slot(from).type, in_place ? from : no_slot);
    redistribute(from, sum, may_overwrite);
    return accumulate(sum, to, false);
  }
  const Along before = slot(from).along(), after = slot(to).along();
  const bool moves_columns = splits_layers() && before.model != after.model,
             moves_positions = splits_positions() && before.context != after.context;
  if (moves_columns && moves_positions) {
    // Positions leave their share last and come back to it first, because `model` splits the rows
    // of the share.
    const Along between = before.context.is_shard(0) ? Along{after.model, before.context}
                                                     : Along{before.model, after.context};
    const SlotId middle =
        add(slot(to).path + ".moved", slot(to).role, extent_of(slot(to)), between, slot(from).type);
    redistribute(from, middle, false);
    return redistribute(middle, to, true);
  }
  SlotId scratch = no_slot;
  if (packed(slot(from), after) > 0) {
    const Along place = moves_positions
                            ? Along{before.model, Placement::shard(0)}
                            : Along{packed_placement(before.model, after.model), before.context};
    scratch = add(slot(to).path + ".packed", TensorRole::scratch, extent_of(slot(to)), place,
                  slot(from).type);
  }
  emit({.operation = StepOperation::redistribute,
        .operands = {.from = from, .to = to, .scratch = scratch},
        .call = call_between(slot(from), after, moves_positions)});
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
  const auto call = [&](Operation operation) {
    return ActionCall{RankSet::context, operation, Payload::own_tensor, slot(to).type,
                      content_of(slot(to))};
  };
  emit({.operation = StepOperation::receive,
        .phase = phase,
        .operands = {.to = to},
        .call = call(Operation::receive),
        .tag = to});
  emit({.operation = StepOperation::send,
        .phase = phase,
        .operands = {.from = from},
        .call = call(Operation::send),
        .tag = to});
}

void PassTensors::accumulate(SlotId from, SlotId to, bool adds) {
  emit(
      {.operation = StepOperation::accumulate, .operands = {.from = from, .to = to}, .adds = adds});
}

}  // namespace tessera::detail
