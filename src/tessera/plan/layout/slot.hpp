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

/// Where one tensor of a step lives: everything that engine, memory plan and traffic plan ask of
/// it.
struct Slot {
  std::string path;
  TensorRole role = TensorRole::activation;
  Shape shape{};            ///< global; of the first microbatch, which has the most rows
  Placements placements{};  ///< one per mesh axis
  Placement along_model{};  ///< that of the axis `model`, also where the mesh has none
  DType type = DType::float32;
  Size positions = 1;  ///< rows of a sample, of tensors of a batch

  // Of parameters, their gradients and moments, which lie in flat buckets (StatePlan).
  Size parameter = -1;     ///< position in StagePlan::parameters
  bool in_shares = false;  ///< a rank keeps of its block only its share of the flat bucket

  // Of activations, their gradients and scratch, which lie in the frame of the stage.
  Size storage = -1;  ///< position in StagePlan::storages; tensors may share one

  bool in_frame() const { return storage >= 0; }
};

/// For people: what a message with this tensor carries.
inline std::string_view content_of(const Slot& slot) {
  return slot.role == TensorRole::gradient ? "activation gradients" : "activations";
}

}  // namespace tessera
