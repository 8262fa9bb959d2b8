// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>

#include <tessera/base/error.hpp>
#include <tessera/tensor/redistribute_plan.hpp>

namespace tessera {
namespace {

/// Elements that a rank sends in a ring, calls, steps; compared in this order.
using Cost = std::tuple<Size, Size, Size>;

/// `elements` are those of the call's payload.
Cost cost_of(Transition t, Size elements, Size ranks) {
  const Size moved = elements - elements / ranks;
  if (t == Transition::all_reduce) return {2 * moved, 1, 1};
  return is_collective(t) ? Cost{moved, 1, 1} : Cost{0, 0, 1};
}

Cost operator+(const Cost& a, const Cost& b) {
  return {std::get<0>(a) + std::get<0>(b), std::get<1>(a) + std::get<1>(b),
          std::get<2>(a) + std::get<2>(b)};
}

/// Returns true if a later cut splits a dimension that the cut by `axis` splits too.
bool is_outer(const Cuts& cuts, std::size_t axis) {
  const auto own = std::find_if(cuts.begin(), cuts.end(),
                                [&](const Cut& cut) { return cut.axes.contains(axis); });
  return own != cuts.end() && std::any_of(own + 1, cuts.end(), [&](const Cut& later) {
           return later.dimension < own->dimension + own->joined &&
                  own->dimension < later.dimension + later.joined;
         });
}

Placements with(Placements placements, std::size_t axis, Placement next) {
  placements[axis] = next;
  return placements;
}

/// Tries the orders of steps depth first and keeps the cheapest.
class StepSearch {
 public:
  using CutsOf = std::function<Cuts(const Placements&)>;

  StepSearch(const Shape& shape, const Placements& to, const MeshShape& mesh, const CutsOf& cuts)
      : shape_(shape), to_(to), mesh_(mesh), cuts_(cuts) {}

  /// Returns the steps without payloads. A direct one is the cheapest where one axis changes and no
  /// other is in the way.
  std::vector<RedistributeStep> cheapest(const Placements& from) {
    const auto axis = static_cast<std::size_t>(
        std::mismatch(from.begin(), from.end(), to_.begin()).first - from.begin());
    if (axis < from.size() && with(from, axis, to_[axis]) == to_ &&
        !is_blocked(from, axis, to_[axis]))
      return {step(from, axis, to_[axis])};
    visit(from, std::vector<bool>(from.size()), {});
    return best_;
  }

  /// Returns the elements of the block of a collective step: that of the ranks along its axis or,
  /// in an all-to-all, the rank's own.
  Size elements(const Placements& now, const RedistributeStep& step, Size rank) const {
    const bool is_own = step.transition == Transition::all_to_all;
    const Cuts cuts = cuts_(is_own ? now : with(now, step.axis, Placement::replicate()));
    return num_elements(piece(shape_, cuts, mesh_, rank).extent);
  }

 private:
  static RedistributeStep step(const Placements& now, std::size_t axis, Placement next) {
    return {axis, now[axis], next, transition(now[axis], next)};
  }

  /// Returns true if a later cut splits a dimension that the step cuts or joins.
  bool is_blocked(const Placements& now, std::size_t axis, Placement next) const {
    return is_outer(cuts_(now), axis) || is_outer(cuts_(with(now, axis, next)), axis);
  }

  void visit(const Placements& now, const std::vector<bool>& moved, const Cost& cost) {
    if (best_cost_ <= cost) return;
    if (now == to_) {
      best_ = path_;
      best_cost_ = cost;
      return;
    }
    for (std::size_t a = 0; a < now.size(); ++a) {
      if (moved[a] && !now[a].is_replicate()) continue;
      std::vector<Placement> choices{to_[a]};
      if (!to_[a].is_replicate()) choices.push_back(Placement::replicate());
      for (const Placement& next : choices) {
        if (next == now[a] || is_blocked(now, a, next)) continue;
        std::vector<bool> moved_after = moved;
        moved_after[a] = true;
        path_.push_back(step(now, a, next));
        // All ranks must agree: the search uses the pieces of rank 0, which are the largest.
        visit(with(now, a, next), moved_after,
              cost + cost_of(path_.back().transition, elements(now, path_.back(), 0),
                             mesh_.axes()[a].size));
        path_.pop_back();
      }
    }
  }

  const Shape& shape_;
  const Placements& to_;
  const MeshShape& mesh_;
  const CutsOf& cuts_;
  std::vector<RedistributeStep> path_, best_;
  Cost best_cost_{std::numeric_limits<Size>::max(), 0, 0};
};

}  // namespace

std::vector<RedistributeStep> plan_redistribute(
    const Shape& global_shape, const Placements& from, const Placements& to, const MeshShape& mesh,
    Size rank, const std::function<Cuts(const Placements&)>& cuts) {
  check_placements(from, mesh, global_shape.size());
  check_placements(to, mesh, global_shape.size());
  Placements now = from, end = to;
  for (std::size_t a = 0; a < mesh.num_axes(); ++a) {
    if (mesh.axes()[a].size == 1) now[a] = end[a] = Placement::replicate();
    if (end[a].is_partial() && !now[a].is_partial())
      throw Error(ExitCode::usage, "a tensor with placements {} cannot become {}",
                  to_string(from, mesh), to_string(to, mesh));
  }
  StepSearch search(global_shape, end, mesh, cuts);
  std::vector<RedistributeStep> steps = search.cheapest(now);
  for (RedistributeStep& step : steps) {
    if (is_collective(step.transition)) step.payload_elements = search.elements(now, step, rank);
    now[step.axis] = step.to;
  }
  return steps;
}

}  // namespace tessera
