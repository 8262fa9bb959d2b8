// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/base/names.hpp>
#include <tessera/base/types.hpp>
#include <tessera/plan/layout/strategy.hpp>
#include <tessera/tensor/piece.hpp>
#include <tessera/tensor/placement.hpp>

namespace tessera {

enum class TensorRole : std::uint8_t { parameter, gradient, moment, activation, batch, scratch };
template <>
inline constexpr std::array<std::string_view, 6> names_of<TensorRole>{
    "parameter", "gradient", "moment", "activation", "batch", "scratch"};

/// Position of a slot in StagePlan::slots.
using SlotId = Size;
inline constexpr SlotId no_slot = -1;

/// One tensor of a step and its place in memory. Engine, memory plan and traffic plan read it.
struct Slot {
  std::string path;
  TensorRole role = TensorRole::activation;
  /// Global shape. A tensor of a batch has the dimensions sample, position and column, without
  /// position if no layer of the model has any. Its samples are those of the first microbatch of
  /// all ranks together; no microbatch has more.
  Shape shape{};
  /// One per mesh axis. Sharding by ZeRO and FSDP is not among them: parameters are Replicate along
  /// the batch axes, and a share is a range of the flat bucket (BucketPlan::shares).
  Placements placements{};
  DType type = DType::float32;
  Cuts cuts{};            ///< of `shape`
  AxisSet sample_axes{};  ///< the axes that split the samples of a tensor of a batch

  // Parameters, gradients and moments lie in flat buckets (StatePlan).
  Size parameter = -1;      ///< position in ParameterLayout::parameters
  Held held = Held::whole;  ///< a rank keeps only the elements of its block that are in this part

  // Activations, their gradients and scratch lie in the frame: the stage's memory for one step.
  Size storage = -1;  ///< position in StagePlan::storages; several tensors may share one
  /// The tensor of which this one is a run of rows, in its memory; no_slot: it is no piece.
  SlotId piece_of = no_slot;

  bool in_frame() const { return storage >= 0; }
  Size positions() const { return shape.size() == 3 ? shape[1] : 1; }
};

/// Returns the extents of the piece of a tensor of a batch on a rank in a microbatch, of which the
/// tensor has `samples` samples (BatchSamples::in()). The axis `whole_along` splits nothing.
Shape local_shape(const Slot& slot, Size samples, const MeshShape& mesh, Size rank,
                  std::optional<std::size_t> whole_along = {});
/// Returns the elements before those of the rank in what it holds of Slot::piece_of.
Size offset_in_whole(const Slot& slot, Size samples, const MeshShape& mesh, Size rank);

/// The operand of redistribute_along() in a move along one axis: the block that the ranks along the
/// axis hold together, and its placements.
struct MovedBlock {
  Placement before, after;
  Shape shape;
};

/// Returns the block of a move from one tensor to another. Its dimensions are sample, position,
/// column and, where experts move, the columns of an expert. What `context` splits lies rank after
/// rank, so positions come before samples. If the axis splits samples, its first `filled` ranks
/// have some (Split::filled).
MovedBlock moved_block(const Slot& from, const Slot& to, std::size_t axis, Size samples,
                       Size filled, const MeshShape& mesh, Size rank);

/// Returns what a call with this tensor moves: "activations" or "activation gradients".
inline std::string_view content_of(const Slot& slot) {
  return slot.role == TensorRole::gradient ? "activation gradients" : "activations";
}

}  // namespace tessera
