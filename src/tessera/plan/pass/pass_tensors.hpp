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
  /// The extents of a tensor of a batch: `positions` rows per sample, and `columns` columns.
  struct Extent {
    Size positions, columns;
  };

  explicit PassTensors(const PlanInput& input)
      : input_(input),
        samples_(first_microbatch_samples(input)),
        first_{.model_ranks = input.mesh.size_of("model"),
               .context_ranks = input.mesh.size_of("context"),
               .expert_ranks = input.mesh.size_of("expert")} {}

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
  static Extent output_of(const LayerSpec& layer) { return {layer.positions, layer.out}; }
  static Extent extent_of(const Slot& slot) { return {slot.positions, slot.shape[1]}; }

  /// Returns true if the axis `model` has several ranks.
  bool splits_layers() const { return first_.model_ranks > 1; }
  bool splits_positions() const { return first_.context_ranks > 1; }
  /// Returns true if tensors with these placements are the same on this mesh.
  bool alike(Along a, Along b) const {
    return (!splits_layers() || a.model == b.model) &&
           (!splits_positions() || a.context == b.context) && a.experts == b.experts;
  }
  /// Returns true if a tensor can be read with the placements `needed` as it is.
  bool as_needed(SlotId id, Along needed) const { return alike(slot(id).along(), needed); }
  /// Returns the type of a tensor with these placements. Terms of a sum over ranks have the state
  /// type, all other tensors the compute type.
  DType type_of(Along along) const {
    return are_terms(along) ? input_.state_type : input_.compute_type;
  }
  bool are_terms(Along along) const {
    return (splits_layers() && along.model.is_partial()) ||
           (splits_positions() && along.context.is_partial());
  }

  /// Adds a slot and returns its position. It is Shard(0) along the batch axes. It
  /// shares the memory of `in_memory_of` if that is given; else it gets a storage of its own,
  /// unless it is the batch, which is not in the frame. The first overload uses type_of(along).
  SlotId add(std::string path, TensorRole role, Extent of, Along along,
             SlotId in_memory_of = no_slot);
  SlotId add(std::string path, TensorRole role, Extent of, Along along, DType type,
             SlotId in_memory_of = no_slot);

  /// Emits the redistributions of `from` to `to`, one for each axis along which their placements
  /// differ, and a conversion if their types differ. `may_overwrite`: no later action reads `from`.
  void redistribute(SlotId from, SlotId to, bool may_overwrite);
  /// True if keys and values go round the ranks of `context`.
  bool rings(const LayerSpec& layer) const;
  Size ring_size() const { return first_.context_ranks; }
  /// Adds a slot like that of keys and values, for those of the rank `shift` places before or, with
  /// the role `gradient`, for their gradients in the state type.
  SlotId add_shifted(SlotId keys, TensorRole role, Size shift);
  /// Emits the start or the finish of the messages by which `from` goes to the next rank of
  /// `context`, and `to` comes from the one before.
  void pass_on(SlotId from, SlotId to, Phase phase);

  /// Emits the addition of `from` to `to` or, without `adds`, a copy or conversion.
  void accumulate(SlotId from, SlotId to, bool adds);

 private:
  Along halfway(const Along& before, const Along& after) const;
  SampleCounts samples_of_first() const {
    return {microbatch_samples(input_, 0, 0).count, group_samples(input_, input_.batch_size, 0, 0)};
  }

  const PlanInput& input_;
  Size samples_;     ///< samples of the first microbatch on all ranks together
  AlongRank first_;  ///< the rank with the largest blocks
  PassPlan pass_;
  List list_ = &ChunkPass::forward;
};

}  // namespace tessera::detail
