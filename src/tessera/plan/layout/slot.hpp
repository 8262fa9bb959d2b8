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

/// The place of one tensor of a step. Engine, memory plan and traffic plan read it.
struct Slot {
  std::string path;
  TensorRole role = TensorRole::activation;
  Shape shape{};            ///< global shape in the first microbatch, which has the most rows
  Placements placements{};  ///< one per mesh axis
  Placement along_model{};  ///< placement along `model`; set for a mesh without that axis, too
  DType type = DType::float32;
  Size positions = 1;  ///< rows per sample, for a tensor of a batch

  // Parameters, gradients and moments lie in flat buckets (StatePlan).
  Size parameter = -1;     ///< position in StagePlan::parameters
  bool in_shares = false;  ///< a rank keeps only the elements of its block that are in its share

  // Activations, their gradients and scratch lie in the frame of the stage.
  Size storage = -1;  ///< position in StagePlan::storages; tensors may share one

  bool in_frame() const { return storage >= 0; }
};

/// Returns a description of a message with this tensor.
inline std::string_view content_of(const Slot& slot) {
  return slot.role == TensorRole::gradient ? "activation gradients" : "activations";
}

}  // namespace tessera
