// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/mesh/placement.hpp>
#include <tessera/mesh/transition.hpp>

namespace tessera {

/// One transition along one axis of a mesh.
struct RedistributeStep {
  std::size_t axis = 0;
  Placement from, to;
  Transition transition = Transition::keep;
  /// Elements of the full logical buffer of the collective as `rank` sees it: the block of its
  /// group along the axis. 0 for local steps.
  Size payload_elements = 0;
  friend bool operator==(const RedistributeStep&, const RedistributeStep&) = default;
};

/// The steps that take a tensor from one set of placements to another, as `rank` sees them; every
/// rank gets the same steps, only payloads differ, where blocks are uneven.
///
/// An axis goes to its new placement directly or by way of Replicate. A step that touches dimension
/// d needs that no later axis shards d, because the later axis splits the parts of the earlier. Of
/// all orders that satisfy this the cheapest is taken: fewest elements sent by a ring , then fewest calls. So slices come before reductions, and reductions before gathers.
/// Axes of size 1 take no step.
std::vector<RedistributeStep> plan_redistribute(const Shape& global_shape, const Placements& from,
                                                const Placements& to, const MeshShape& mesh,
                                                Size rank);

}  // namespace tessera
