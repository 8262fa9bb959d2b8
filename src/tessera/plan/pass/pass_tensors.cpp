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

/// Returns the call that changes the placement of a tensor along `model`; none if the transition is
/// local. No rank holds the full buffer of an all-to-all, so its payload is the rank's own block.
std::optional<ActionCall> call_between(const Slot& from, Placement after) {
  const Transition change = transition(from.along_model, after);
  const std::optional<Operation> operation = operation_of(change);
  if (!operation) return std::nullopt;
  return ActionCall{RankSet::model, *operation,
                    change == Transition::all_to_all ? Payload::own_tensor : Payload::tensor,
                    from.type, content_of(from)};
}

}  // namespace

SlotId PassTensors::add(std::string path, TensorRole role, Extent of, Placement along_model,
                        SlotId in_memory_of) {
  return add(std::move(path), role, of, along_model, type_of(along_model), in_memory_of);
}

SlotId PassTensors::add(std::string path, TensorRole role, Extent of, Placement along_model,
                        DType type, SlotId in_memory_of) {
  Placements placements = replicated(input_.mesh);
  for (const std::string& axis : batch_axes(input_.mesh))
    placements[*input_.mesh.find(axis)] = Placement::shard(0);
  if (const auto model = input_.mesh.find("model")) placements[*model] = along_model;
  if (of.experts > 0) placements[*input_.mesh.find("expert")] = by_columns;
  Slot slot{.path = std::move(path),
            .role = role,
            .shape = {samples_ * of.positions, of.columns},
            .placements = placements,
            .along_model = along_model,
            .type = type,
            .positions = of.positions,
            .experts = of.experts};
  if (in_memory_of != no_slot) {
    slot.storage = storage_of(in_memory_of);
  } else if (role != TensorRole::batch) {
    // Rank 0 has the largest block of every tensor.
    Block first = parameter_block(group_of(slot), along_model, input_.mesh.size_of("model"), 0);
    if (slot.experts > 0)
      first =
          expert_block(first, 1, slot.shape[1] / slot.experts, input_.mesh.size_of("expert"), 0);
    const Size elements = num_elements(first.extent);
    slot.storage = static_cast<Size>(pass_.storages.size());
    pass_.storages.push_back({elements * size_of(slot.type)});
  }
  pass_.slots.push_back(std::move(slot));
  return next_slot() - 1;
}

/// Returns the shape of the block that a group of ranks along `model`, or along `expert` if it
/// splits the slot, holds together, on the first group, which holds the largest.
Shape PassTensors::group_of(const Slot& slot) const {
  Size samples = microbatch_samples(input_, 0, 0).count;
  if (slot.experts > 0) samples = first_group_samples(input_);
  return {samples * slot.positions, slot.shape[1]};
}

/// The messages are packed in the tensor that has the rank's own rows.
void PassTensors::exchange(SlotId from, SlotId to) {
  const SlotId own = slot(from).experts > 0 ? to : from;
  const SlotId scratch = add(slot(to).path + ".packed", TensorRole::scratch, extent_of(slot(own)),
                             slot(own).along_model, slot(from).type);
  emit({.operation = StepOperation::redistribute,
        .operands = {.from = from, .to = to, .scratch = scratch},
        .call = ActionCall{RankSet::expert, Operation::all_to_all, Payload::own_tensor,
                           slot(from).type, content_of(slot(from))}});
}

void PassTensors::redistribute(SlotId from, SlotId to, bool may_overwrite) {
  if (slot(from).experts != slot(to).experts) return exchange(from, to);
  if (slot(from).type != slot(to).type) {
    const Slot like = slot(to);
    const bool in_place = may_overwrite && like.along_model.is_replicate();
    const SlotId sum = add(like.path + ".sum", like.role, extent_of(like), like.along_model,
                           slot(from).type, in_place ? from : no_slot);
    redistribute(from, sum, may_overwrite);
    return accumulate(sum, to, false);
  }
  const Placement before = slot(from).along_model, after = slot(to).along_model;
  const Shape group = group_of(slot(from));
  SlotId scratch = no_slot;
  if (packed_elements(before, after, group, input_.mesh.size_of("model"), 0) > 0)
    scratch = add(slot(to).path + ".packed", TensorRole::scratch, extent_of(slot(to)),
                  packed_placement(before, after), slot(from).type);
  emit({.operation = StepOperation::redistribute,
        .operands = {.from = from, .to = to, .scratch = scratch},
        .call = call_between(slot(from), after)});
}

void PassTensors::accumulate(SlotId from, SlotId to, bool adds) {
  emit(
      {.operation = StepOperation::accumulate, .operands = {.from = from, .to = to}, .adds = adds});
}

}  // namespace tessera::detail
