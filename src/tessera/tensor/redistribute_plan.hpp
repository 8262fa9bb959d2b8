// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include <tessera/tensor/piece.hpp>
#include <tessera/tensor/placement.hpp>
#include <tessera/tensor/transition.hpp>

namespace tessera {

/// One transition along one axis of a mesh.
struct RedistributeStep {
  std::size_t axis = 0;
  Placement from, to;
  Transition transition = Transition::keep;
  /// Elements of the full logical buffer of the collective: the block of the rank's group along the
  /// axis; for an all-to-all the rank's own piece. 0 for local steps.
  Size payload_elements = 0;
  friend bool operator==(const RedistributeStep&, const RedistributeStep&) = default;
};

/// Returns the steps that turn one set of placements into another. Every rank gets the same steps;
/// payloads are those of `rank`, and differ where pieces are uneven.
///
/// Each axis goes to its new placement directly or by way of Replicate; axes of size 1 take no
/// step. An axis may shard or gather dimension d only while no later axis shards d, because the
/// later one splits the parts of the earlier one. Among the orders that satisfy this, the result
/// sends the fewest elements in rings, then makes the fewest calls. Slices therefore come before
/// reductions, and reductions before gathers. The search is over all orders of the axes that
/// change: exponential in the number of axes, which is at most 5 in practice.
///
/// `cuts` returns the cuts of the tensor with given placements, one axis each, outermost first.
///
/// Throws Error (usage) for placements that do not match the mesh or the shape, and if an axis
/// would have to become Partial.
std::vector<RedistributeStep> plan_redistribute(
    const Shape& global_shape, const Placements& from, const Placements& to, const MeshShape& mesh,
    Size rank, const std::function<Cuts(const Placements&)>& cuts = cuts_of);

}  // namespace tessera
