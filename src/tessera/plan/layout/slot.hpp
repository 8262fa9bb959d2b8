// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <tessera/base/names.hpp>
#include <tessera/base/split.hpp>
#include <tessera/base/types.hpp>
#include <tessera/mesh/placement.hpp>

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
  /// Global shape; for a tensor of a batch, (rows, columns) of the first microbatch, which has the
  /// most rows.
  Shape shape{};
  Placements placements{};  ///< one per mesh axis
  Placement along_model{};  ///< placement along `model`; also set for a mesh without that axis
  DType type = DType::float32;
  Size positions = 1;  ///< rows per sample, for a tensor of a batch
  /// If `expert` splits the tensor's columns, or the first dimension of a parameter, by experts:
  /// their number. Such a tensor of a batch has the rows of all ranks along `expert`.
  Size experts = 0;

  // Parameters, gradients and moments lie in flat buckets (StatePlan).
  Size parameter = -1;     ///< position in ParameterLayout::parameters
  bool in_shares = false;  ///< a rank keeps only the elements of its block that are in its share

  // Activations, their gradients and scratch lie in the frame: the stage's memory for one step.
  Size storage = -1;  ///< position in StagePlan::storages; several tensors may share one

  bool in_frame() const { return storage >= 0; }
};

/// Returns what a call with this tensor moves: "activations" or "activation gradients".
inline std::string_view content_of(const Slot& slot) {
  return slot.role == TensorRole::gradient ? "activation gradients" : "activations";
}

}  // namespace tessera
