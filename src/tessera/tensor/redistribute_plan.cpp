// SPDX-License-Identifier: Apache-2.0
#include <tuple>

#include <tessera/tensor/piece.hpp>
#include <tessera/tensor/redistribute_plan.hpp>

namespace tessera {
namespace {

/// Elements sent by a ring, calls, steps; compared in this order.
using Cost = std::tuple<Size, Size, Size>;

/// Returns the elements of the block that the ranks of one group along `axis` hold together.
Size group_elements(const Shape& shape, Placements placements, std::size_t axis,
                    const MeshShape& mesh, Size rank) {
  placements[axis] = Placement::replicate();
  return num_elements(piece(shape, cuts_of(placements), mesh, rank).extent);
}

Cost cost_of(Transition t, Size elements, Size ranks) {
  const Size moved = elements - elements / ranks;
  if (t == Transition::all_reduce) return {2 * moved, 1, 1};
  if (t == Transition::all_to_all) return {moved / ranks, 1, 1};
  return is_collective(t) ? Cost{moved, 1, 1} : Cost{0, 0, 1};
}

Cost operator+(const Cost& a, const Cost& b) {
  return {std::get<0>(a) + std::get<0>(b), std::get<1>(a) + std::get<1>(b),
          std::get<2>(a) + std::get<2>(b)};
}

/// Returns true if a later axis shards a dimension that the step of `axis` to `next` cuts or joins.
bool is_blocked(const Placements& now, std::size_t axis, Placement next) {
  for (std::size_t b = axis + 1; b < now.size(); ++b) {
    if (!now[b].is_shard()) continue;
    if (now[b].dim() == now[axis].dim() || now[b].dim() == next.dim()) return true;
  }
  return false;
}

/// Tries the orders of steps depth first and keeps the cheapest.
class StepSearch {
 public:
  using Path = std::vector<std::pair<std::size_t, Placement>>;  ///< axis, its next placement

  StepSearch(const Shape& shape, const Placements& to, const MeshShape& mesh)
      : shape_(shape), to_(to), mesh_(mesh) {}

  Path cheapest(const Placements& from) {
    visit(from, std::vector<bool>(from.size()), {});
    return best_;
  }

 private:
  void visit(const Placements& now, const std::vector<bool>& moved, const Cost& cost) {
    if (found_ && best_cost_ <= cost) return;
    if (now == to_) {
      found_ = true;
      best_ = path_;
      best_cost_ = cost;
      return;
    }
    for (std::size_t a = 0; a < now.size(); ++a) {
      if (moved[a] && !now[a].is_replicate()) continue;
      for (const bool directly : {true, false}) {
        const Placement next = directly ? to_[a] : Placement::replicate();
        if (next == now[a] || is_blocked(now, a, next)) continue;
        if (!directly && next == to_[a]) continue;
        Placements after = now;
        after[a] = next;
        std::vector<bool> moved_after = moved;
        moved_after[a] = true;
        path_.emplace_back(a, next);
        // All ranks must agree: the search uses the pieces of rank 0, which are the largest.
        visit(after, moved_after,
              cost + cost_of(transition(now[a], next), group_elements(shape_, now, a, mesh_, 0),
                             mesh_.axes()[a].size));
        path_.pop_back();
      }
    }
  }

  const Shape& shape_;
  const Placements& to_;
  const MeshShape& mesh_;
  Path path_, best_;
  Cost best_cost_;
  bool found_ = false;
};

}  // namespace

std::vector<RedistributeStep> plan_redistribute(const Shape& global_shape, const Placements& from,
                                                const Placements& to, const MeshShape& mesh,
                                                Size rank) {
  check_placements(from, mesh, global_shape.size());
  check_placements(to, mesh, global_shape.size());
  Placements now = from, end = to;
  for (std::size_t a = 0; a < mesh.num_axes(); ++a) {
    if (mesh.axes()[a].size == 1) now[a] = end[a] = Placement::replicate();
  }
  std::vector<RedistributeStep> steps;
  for (const auto& [axis, next] : StepSearch(global_shape, end, mesh).cheapest(now)) {
    RedistributeStep step{axis, now[axis], next, transition(now[axis], next)};
    if (step.transition == Transition::all_to_all) {
      step.payload_elements = num_elements(piece(global_shape, cuts_of(now), mesh, rank).extent);
    } else if (is_collective(step.transition)) {
      step.payload_elements = group_elements(global_shape, now, axis, mesh, rank);
    }
    steps.push_back(step);
    now[axis] = next;
  }
  return steps;
}

}  // namespace tessera
