// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tessera/plan/grains.hpp>
#include <tessera/plan/layout/layouts.hpp>
#include <tessera/plan/pass/pass.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera::detail {

/// The PassPlan under construction: adds slots and appends actions ("emits" them). Makes the
/// actions that move or add tensors.
class PassTensors {
 public:
  /// The extents of a tensor of a batch: `positions` rows per sample, `columns` columns, and
  /// Slot::experts.
  struct Extent {
    Size positions, columns, experts = 0;
  };

  explicit PassTensors(const PlanInput& input)
      : input_(input),
        samples_(first_microbatch_samples(input)),
        splits_layers_(input.mesh.size_of("model") > 1) {}

  PassPlan take() { return std::move(pass_); }
  ChunkPass& chunk() { return pass_.chunks.back(); }
  void begin_chunk() { pass_.chunks.emplace_back(), emit_to(&ChunkPass::forward); }

  /// Sets the list of the chunk to which emit() appends. Returns the previous one.
  using List = std::vector<Action> ChunkPass::*;
  List emit_to(List list) { return std::exchange(list_, list); }
  bool emits_to(List list) const { return list_ == list; }
  void emit(Action action) { (chunk().*list_).push_back(std::move(action)); }

  SlotId next_slot() const { return static_cast<SlotId>(pass_.slots.size()); }
  const Slot& slot(SlotId id) const { return pass_.slots[id]; }
  Size storage_of(SlotId id) const { return slot(id).storage; }
  static Extent extent_of(const Slot& slot) {
    return {slot.positions, slot.shape[1], slot.experts};
  }

  /// Returns true if the axis `model` has several ranks.
  bool splits_layers() const { return splits_layers_; }
  /// Returns true if a tensor can be read with the placement `needed` along `model` as it is.
  bool as_needed(SlotId id, Placement needed) const {
    return !splits_layers_ || slot(id).along_model == needed;
  }
  /// Returns the type of a tensor with this placement. Terms of a sum over `model` have the state
  /// type, all other tensors the compute type.
  DType type_of(Placement along_model) const {
    return splits_layers_ && along_model.is_partial() ? input_.state_type : input_.compute_type;
  }

  /// Adds a slot and returns its position. It is Shard(0) along the batch axes. It
  /// shares the memory of `in_memory_of` if that is given; else it gets a storage of its own,
  /// unless it is the batch, which is not in the frame. The first overload uses
  /// type_of(along_model).
  SlotId add(std::string path, TensorRole role, Extent of, Placement along_model,
             SlotId in_memory_of = no_slot);
  SlotId add(std::string path, TensorRole role, Extent of, Placement along_model, DType type,
             SlotId in_memory_of = no_slot);

  /// Emits the redistribution of `from` to `to` along `model`, and a conversion if their types
  /// differ; or along `expert`, if only one of them is split by experts. `may_overwrite`: no later
  /// action reads `from`.
  void redistribute(SlotId from, SlotId to, bool may_overwrite);
  /// Emits the addition of `from` to `to` or, without `adds`, a copy or conversion.
  void accumulate(SlotId from, SlotId to, bool adds);

 private:
  Shape group_of(const Slot& slot) const;
  void exchange(SlotId from, SlotId to);

  const PlanInput& input_;
  Size samples_;  ///< samples of the first microbatch on all ranks together
  bool splits_layers_;
  PassPlan pass_;
  List list_ = &ChunkPass::forward;
};

}  // namespace tessera::detail
