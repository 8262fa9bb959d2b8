// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <tessera/base/names.hpp>
#include <tessera/base/split.hpp>
#include <tessera/base/types.hpp>
#include <tessera/plan/layout/rank_set.hpp>
#include <tessera/tensor/piece.hpp>
#include <tessera/tensor/placement.hpp>
#include <tessera/tensor/transition.hpp>

namespace tessera {

enum class TensorRole : std::uint8_t { parameter, gradient, moment, activation, batch, scratch };
template <>
inline constexpr std::array<std::string_view, 6> names_of<TensorRole>{
    "parameter", "gradient", "moment", "activation", "batch", "scratch"};

/// Position of a slot in StagePlan::slots.
using SlotId = Size;
inline constexpr SlotId no_slot = -1;

/// Placements of a tensor of a batch along `model`, `context` and `expert`. Rows are split along
/// `context` by positions, for each sample (Split).
struct Along {
  Placement model{}, context = Placement::shard(0);
  /// If `expert` splits the columns by experts: their number. Such a tensor has the rows of all
  /// ranks along `expert`; with 0 each rank has those of its samples.
  Size experts = 0;
  friend constexpr bool operator==(const Along&, const Along&) = default;
};

/// Returns true if tensors with these placements differ at most along `model`.
constexpr bool differ_along_model(Along a, const Along& b) {
  a.model = b.model;
  return a == b;
}

/// Sizes of these axes, and a rank's coordinates.
struct AlongRank {
  Size model_ranks = 1, model = 0, context_ranks = 1, context = 0, expert_ranks = 1, expert = 0;
};

/// Samples of a microbatch: those of one rank, and those of all ranks along `expert` with it.
struct SampleCounts {
  Size own = 0, group = 0;
  Size of(Size experts) const { return experts > 0 ? group : own; }
};

/// One tensor of a step and its place in memory. Engine, memory plan and traffic plan read it.
struct Slot {
  std::string path;
  TensorRole role = TensorRole::activation;
  /// Global shape; for a tensor of a batch, (rows, columns) of the first microbatch, which has the
  /// most rows.
  Shape shape{};
  Placements placements{};  ///< one per mesh axis
  Placement along_model{};  ///< placement along `model`; also set for a mesh without that axis
  DType type = DType::float32;
  Size positions = 1;  ///< rows per sample, for a tensor of a batch
  /// Experts of a tensor that `expert` splits: see Along. It splits parameters along dimension 0.
  Size experts = 0;
  Cuts cuts{};  ///< of `shape`; of a tensor of a batch as if positions were no runs of a sample

  Along along() const { return {along_model, along_context, experts}; }

  // Parameters, gradients and moments lie in flat buckets (StatePlan).
  Size parameter = -1;     ///< position in ParameterLayout::parameters
  bool in_shares = false;  ///< a rank keeps only the elements of its block that are in its share

  // Activations, their gradients and scratch lie in the frame: the stage's memory for one step.
  Size storage = -1;  ///< position in StagePlan::storages; several tensors may share one
  Placement along_context = Placement::shard(0);  ///< placement along `context`
  Size shift = 0;  ///< the rows are those of the rank that is `shift` places before along `context`

  bool in_frame() const { return storage >= 0; }
};

/// Returns (rows, columns) of a tensor of a batch with these placements on a rank. `expert` splits
/// the columns that `model` leaves, by whole experts.
inline Shape local_shape(const Slot& slot, Along along, SampleCounts samples,
                         const AlongRank& rank) {
  const auto part = [](Size n, bool split, Size ranks, Size coordinate) {
    return split ? balanced_split(n, ranks, coordinate).count : n;
  };
  const Size owner = (rank.context + rank.context_ranks - slot.shift) % rank.context_ranks;
  const Size rows = samples.of(along.experts) *
                    part(slot.positions, along.context.is_shard(0), rank.context_ranks, owner),
             columns = part(slot.shape[1], along.model.is_shard(1), rank.model_ranks, rank.model),
             width = along.experts > 0 ? slot.shape[1] / along.experts : 1,
             kept =
                 part(columns / width, along.experts > 0, rank.expert_ranks, rank.expert) * width;
  return {part(rows, along.model.is_shard(0), rank.model_ranks, rank.model),
          part(kept, along.context.is_shard(1), rank.context_ranks, rank.context)};
}

/// A redistribution as redistribute_along() makes it: the block that the ranks hold together, and
/// its placements.
struct RedistributedBlock {
  RankSet ranks;  ///< model, context or expert
  Size num_ranks;
  Placement before, after;
  Shape shape;
};

/// Along `context`, dimension 0 has the positions and dimension 1 the rows of one of them; columns
/// are dimension 2, or part of dimension 1. Along `expert`, dimensions are samples, positions,
/// experts and the columns of an expert.
inline RedistributedBlock redistributed_block(const Slot& from, Along after, SampleCounts samples,
                                              const AlongRank& rank) {
  const Along before = from.along();
  if (before.experts != after.experts) {
    const Size width = from.shape[1] / std::max(before.experts, after.experts),
               columns = local_shape(from, {before.model, before.context}, samples, rank)[1];
    // A rank of `context` has its share of them here.
    const Size positions = balanced_split(from.positions, rank.context_ranks, rank.context).count;
    const auto place = [](Size experts) { return Placement::shard(experts > 0 ? 2 : 0); };
    return {RankSet::expert,
            rank.expert_ranks,
            place(before.experts),
            place(after.experts),
            {samples.group, positions, columns / width, width}};
  }
  if (rank.context_ranks == 1 || before.context == after.context)
    return {RankSet::model, rank.model_ranks, before.model, after.model,
            local_shape(from, {{}, before.context, before.experts}, samples, rank)};
  const auto columns_last = [](Placement p) { return p.is_shard(1) ? Placement::shard(2) : p; };
  const Shape whole = local_shape(from, {before.model, {}}, samples, rank);
  return {RankSet::context,
          rank.context_ranks,
          columns_last(before.context),
          columns_last(after.context),
          {from.positions, samples.own, whole[1]}};
}

inline Transition transition_of(const Slot& from, const Slot& to, const AlongRank& rank) {
  const RedistributedBlock block = redistributed_block(from, to.along(), {1, 1}, rank);
  return transition(block.before, block.after);
}

/// Returns what a call with this tensor moves: "activations" or "activation gradients".
inline std::string_view content_of(const Slot& slot) {
  return slot.role == TensorRole::gradient ? "activation gradients" : "activations";
}

}  // namespace tessera
