// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <tessera/base/names.hpp>
#include <tessera/base/types.hpp>
#include <tessera/nn/loss_kind.hpp>

namespace tessera {

/// The layers that the backward pass recomputes.
enum class Recomputed : std::uint8_t {
  units,      ///< segments of Recomputation::units units
  block,      ///< segments of a block of the model: block_of()
  cheap,      ///< layers without sums whose inputs the backward pass has anyway
  attention,  ///< attention between q, k, v and the output
};
template <>
inline constexpr std::array<std::string_view, 4> names_of<Recomputed>{"units", "block", "cheap",
                                                                      "attention"};

/// Activations that the backward pass recomputes instead of saving them (Chen et al. 2016). Only
/// the inputs of a segment are saved, but the last segment of the model saves everything.
struct Recomputation {
  Size units = 0;  ///< in a segment; 0: no recomputation
  Recomputed what = Recomputed::units;
  friend bool operator==(const Recomputation&, const Recomputation&) = default;
};

/// Sums in an order that does not depend on the mesh, so that every mesh computes the same bits.
struct Numerics {
  bool reproducible = false;
  /// Parts of a batch whose gradients and losses are summed first; a power of two. Every microbatch
  /// of a rank has whole grains.
  Size grains = 8;
  /// Parts of the dimensions that the mesh axis `model` may split; a power of two.
  Size model_grains = 4;
  friend bool operator==(const Numerics&, const Numerics&) = default;
};

/// The options of a training step. The configuration and the input of a plan both derive from them,
/// so each option has one declaration and one default.
struct StepConfig {
  Size batch_size = 32;   ///< samples per step over all ranks
  Size microbatches = 1;  ///< parts of each rank's batch, whose gradients are accumulated
  LossKind loss = LossKind::mse;
  bool check_finite = false;      ///< stop at the first gradient that is not finite
  Size check_replicas_every = 0;  ///< steps between checks that replicas are equal; 0: never
  Recomputation activation_checkpointing{};
  Numerics numerics{};
};

}  // namespace tessera
