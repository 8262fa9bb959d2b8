// SPDX-License-Identifier: Apache-2.0
// The tensors of a pass as it is lowered, and the actions that only move them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tessera/plan/layout/layouts.hpp>
#include <tessera/plan/pass/pass.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera::detail {

class PassTensors {
 protected:
  explicit PassTensors(const PlanInput& input)
      : input_(input),
        layers_(input.model.layers),
        rows_(first_microbatch_rows(input)),
        splits_layers_(input.mesh.size_of("model") > 1) {}

  static constexpr Placement whole = Placement::replicate();

  Size size() const { return static_cast<Size>(layers_.size()); }
  ChunkPass& chunk() { return pass_.chunks.back(); }
  void emit(Action action) { (chunk().*emit_to_).push_back(std::move(action)); }

  /// A term of a sum keeps the type that sums have until it has been formed.
  DType type_of(Placement along_model) const {
    return splits_layers_ && along_model.is_partial() ? input_.state_type : input_.compute_type;
  }

  /// Of a sample.
  struct Extent {
    Size positions, columns;
  };
  static Extent output_of(const LayerSpec& layer) { return {layer.positions, layer.out}; }
  static Extent extent_of(const Slot& slot) { return {slot.positions, slot.shape[1]}; }

  SlotId add_slot(std::string path, TensorRole role, Extent of, Placement along_model,
                  SlotId in_memory_of = no_slot) {
    return add_slot(std::move(path), role, of, along_model, type_of(along_model), in_memory_of);
  }
  SlotId add_slot(std::string path, TensorRole role, Extent of, Placement along_model, DType type,
                  SlotId in_memory_of = no_slot) {
    Placements placements = replicated(input_.mesh);
    for (const std::string& axis : batch_axes(input_.mesh))
      placements[*input_.mesh.find(axis)] = Placement::shard(0);
    if (const auto model = input_.mesh.find("model")) placements[*model] = along_model;
    Slot slot{std::move(path), role,        {rows_ * of.positions, of.columns},
              placements,      along_model, type,
              of.positions};
    if (in_memory_of != no_slot) {
      slot.storage = storage_of(in_memory_of);
    } else if (role != TensorRole::batch) {
      // The first rank has the largest block of everything.
      const Size elements = num_elements(
          parameter_block(group_of(slot), along_model, input_.mesh.size_of("model"), 0).extent);
      slot.storage = static_cast<Size>(pass_.storages.size());
      pass_.storages.push_back({elements * size_of(slot.type)});
    }
    pass_.slots.push_back(std::move(slot));
    return static_cast<SlotId>(pass_.slots.size()) - 1;
  }

  const Slot& slot(SlotId id) const { return pass_.slots[id]; }

  Size storage_of(SlotId id) const { return slot(id).storage; }

  /// `may_overwrite`: nobody else needs what is in `from`.
  void redistribute(SlotId from, SlotId to, bool may_overwrite) {
    if (slot(from).type != slot(to).type) {
      const Slot like = slot(to);
      const bool in_place = may_overwrite && like.along_model.is_replicate();
      const SlotId sum = add_slot(like.path + ".sum", like.role, extent_of(like), like.along_model,
                                  slot(from).type, in_place ? from : no_slot);
      redistribute(from, sum, may_overwrite);
      return copy(sum, to);
    }
    const Placement before = slot(from).along_model, after = slot(to).along_model;
    const Shape group = group_of(slot(from));
    SlotId scratch = no_slot;
    if (packed_elements(before, after, group, input_.mesh.size_of("model"), 0) > 0)
      scratch = add_slot(slot(to).path + ".packed", TensorRole::scratch, extent_of(slot(to)),
                         packed_placement(before, after), slot(from).type);
    emit({.operation = StepOperation::redistribute,
          .operands = {.from = from, .to = to, .scratch = scratch},
          .call = call_between(slot(from), after)});
  }

  void copy(SlotId from, SlotId to) {
    emit({.operation = StepOperation::accumulate, .operands = {.from = from, .to = to}});
  }

  /// The call that gives a tensor another placement along `model`, if it takes one. An all-to-all
  /// has no buffer that all ranks share.
  static std::optional<ActionCall> call_between(const Slot& from, Placement after) {
    const Transition change = transition(from.along_model, after);
    const std::optional<Operation> operation = operation_of(change);
    if (!operation) return std::nullopt;
    return ActionCall{RankSet::model, *operation,
                      change == Transition::all_to_all ? Payload::own_tensor : Payload::tensor,
                      from.type, content_of(from)};
  }

  /// What the first ranks along `model`, which have the largest blocks, hold together.
  Shape group_of(const Slot& of) const {
    return {batch_share(input_.mesh, rows_, 0).count * of.positions, of.shape[1]};
  }

  /// An all-to-all packs its part of the rows, everything else the whole.
  static Placement packed_placement(Placement before, Placement after) {
    return transition(before, after) == Transition::all_to_all ? Placement::shard(0) : whole;
  }

  bool as_needed(SlotId id, Placement needed) const {
    return !splits_layers_ || slot(id).along_model == needed;
  }

  const PlanInput& input_;
  const std::vector<LayerSpec>& layers_;
  Size rows_;
  bool splits_layers_;
  PassPlan pass_;
  std::vector<Action> ChunkPass::*emit_to_ = &ChunkPass::forward;
};

}  // namespace tessera::detail
