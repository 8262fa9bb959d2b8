// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera::detail {

/// The tensors of a layer that stay in memory until the backward pass reads them. It recomputes the
/// others.
enum class Kept : std::uint8_t { all, output, nothing };

/// Returns true if kinds of layers are recomputed, and no segments.
inline bool chooses_kinds(const Recomputation& asked) {
  return asked.what == Recomputed::cheap || asked.what == Recomputed::attention;
}

/// Returns what StepConfig::activation_checkpointing keeps of each layer of a chunk, by the number
/// of the layer in the model. Layers of other chunks keep all. Throws ConfigError if kinds of
/// layers are to be recomputed and the model has none of them.
std::vector<Kept> kept_tensors(const PlanInput& input, Range chunk);

}  // namespace tessera::detail
