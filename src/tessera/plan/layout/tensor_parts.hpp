// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/plan/plan.hpp>

namespace tessera {

/// What one rank holds of a parameter, its gradient or a moment of it.
struct TensorPart {
  Slot slot;
  Size moment = 0;     ///< of several moments of one parameter, counted from 0
  Block block;         ///< the rank's part along `model`
  Range kept;          ///< of the block's elements in row-major order
  Range owned;         ///< those of them that no other rank with the same block counts as its own
  bool counts = true;  ///< false: a rank with another coordinate along `model` counts this block
  Range place;         ///< of `kept` in the flat buffer of the role, or of the moment
};

/// Those of `role` on `rank`, in the order of the plan.
std::vector<TensorPart> tensor_parts(const Plan& plan, Size rank, TensorRole role);

}  // namespace tessera
