// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/plan/pass/pass.hpp>
#include <tessera/plan/plan_input.hpp>
#include <tessera/tensor/mesh_axes.hpp>
#include <tessera/tensor/placement.hpp>

namespace tessera::detail {

/// Returns true if a sum turns the first placements into the second ones: they differ only along
/// axes where terms become whole. The sum can replace its terms.
bool is_sum(const Placements& terms, const Placements& whole);
bool are_terms(const Placements& placements);

/// The PassPlan under construction: adds slots and appends actions ("emits" them). Makes the
/// actions that move or add tensors.
class PassTensors {
 public:
  /// The extents of a tensor of a batch: `positions` rows per sample, and `columns` columns.
  struct Extent {
    Size positions, columns;
  };

  explicit PassTensors(const PlanInput& input);

  PassPlan& plan() { return pass_; }
  ChunkPass& chunk() { return pass_.chunks.back(); }
  void begin_chunk() { pass_.chunks.emplace_back(), emit_to(&ChunkPass::forward); }

  /// Sets the list of the chunk to which emit() appends.
  using List = std::vector<Action> ChunkPass::*;
  void emit_to(List list) { list_ = list; }
  void emit(Action action) { (chunk().*list_).push_back(std::move(action)); }
  Size num_emitted() { return static_cast<Size>((chunk().*list_).size()); }

  SlotId next_slot() const { return static_cast<SlotId>(pass_.slots.size()); }
  const Slot& slot(SlotId id) const { return pass_.slots[id]; }
  static Extent output_of(const LayerSpec& layer) { return {layer.positions(), layer.out()}; }
  static Extent extent_of(const Slot& slot) { return {slot.positions(), slot.shape.back()}; }
  /// Returns the bytes of a tensor on the rank with the largest piece: the first one, or one whose
  /// keys and values go round.
  Size bytes_of(Slot slot) const;

  /// Returns the placements of a slot, from those of a matrix (rows, columns) along each axis. Only
  /// this function translates them to the dimensions of a slot (sample, position, column): rows
  /// along `context` are positions, and along `model` samples and positions as one.
  template <class F>
  Placements placed_by(const F& along) const {
    Placements placements = replicated(input_.mesh);
    for (const AxisRow& row : mesh_axes) {
      const auto axis = input_.mesh.find(row.name);
      if (!axis) continue;
      placements[*axis] = along(row);
      if (placements[*axis].is_shard(0) && row.splits("positions"))
        placements[*axis] =
            Placement::shard(1).in_blocks(input_.position_blocks(input_.model.output_positions()));
      else if (placements[*axis].is_shard(1))
        placements[*axis] = placements[*axis].of_dim(columns_);
    }
    return placements;
  }
  /// Returns those of a tensor whose samples all axes of the batch split.
  Placements placed(Placement model, Placement context = by_rows) const;

  /// Adds a slot and returns its position. The first overload uses the state type for terms of a
  /// sum over ranks, the compute type for all other tensors.
  SlotId add(std::string path, TensorRole role, Extent of, const Placements& placements);
  SlotId add(std::string path, TensorRole role, Extent of, const Placements& placements,
             DType type);
  /// Adds a slot like an existing one.
  SlotId add_like(SlotId id) { return pass_.slots.push_back(Slot(slot(id))), next_slot() - 1; }

  /// Emits the moves of plan_redistribute() from `from` to `to`, and a conversion if their types
  /// differ.
  void redistribute(SlotId from, SlotId to);
  /// True if keys and values go round the ranks of `context`.
  bool rings(const LayerSpec& layer) const;
  Size ring_size() const { return input_.mesh.size_of("context"); }
  /// Adds a slot like that of keys and values, for those of the rank `shift` places before or, with
  /// the role `gradient`, for their gradients in the state type.
  SlotId add_shifted(SlotId keys, TensorRole role, Size shift);
  /// Emits the start or the finish of the messages by which `from` goes to the next rank of an
  /// axis, and `to` comes from the one before.
  void pass_on(SlotId from, SlotId to, Phase phase, std::string_view axis = "context");
  /// Emits the addition of `from` to `to` or, without `adds`, a copy or conversion.
  void accumulate(SlotId from, SlotId to, bool adds) { emit(Accumulate{from, to, adds}); }

 protected:
  const PlanInput& input_;
  int columns_ = 1;  ///< dimension of the columns

 private:
  Cuts cuts(const Placements& placements, Extent of, AxisSet batch) const;
  void move(SlotId from, SlotId to, std::size_t axis);

  AxisSet batch_axes_;
  Size samples_;               ///< samples of the first microbatch on all ranks together
  BatchSamples most_samples_;  ///< those of rank 0
  Size experts_ = 1;           ///< experts of each layer of experts
  PassPlan pass_;
  List list_ = &ChunkPass::forward;
};

}  // namespace tessera::detail
