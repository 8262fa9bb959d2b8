// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <tessera/array/redistribute_plan.hpp>

namespace tessera {
namespace {

/// Elements sent, calls, steps: compared in this order.
using Cost = std::tuple<Size, Size, Size>;

/// Elements of the block that the ranks of one group along `axis` hold together.
Size group_elements(const Shape& shape, Placements placements, std::size_t axis,
                    const MeshShape& mesh, Size rank) {
  placements[axis] = Placement::replicate();
  return num_elements(local_block(shape, placements, mesh, rank).extent);
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

/// Whether a later axis shards a dimension that the step of `axis` touches.
bool is_blocked(const Placements& now, std::size_t axis, Placement next) {
  for (std::size_t b = axis + 1; b < now.size(); ++b) {
    if (!now[b].is_shard()) continue;
    if (now[b].dim() == now[axis].dim() || now[b].dim() == next.dim()) return true;
  }
  return false;
}

/// Shortest path over placements (Dijkstra); returns every state on it, `from` first.
std::vector<Placements> cheapest_path(const Shape& shape, const Placements& from,
                                      const Placements& to, const MeshShape& mesh) {
  struct Visit {
    Cost cost;
    Placements before;
  };
  std::map<Placements, Visit> best{{from, {}}};
  std::set<std::pair<Cost, Placements>> open{{Cost{}, from}};
  while (open.begin()->second != to) {
    const auto [cost, now] = open.extract(open.begin()).value();
    for (std::size_t a = 0; a < now.size(); ++a) {
      for (const Placement next : {Placement::replicate(), to[a]}) {
        if (next == now[a] || is_blocked(now, a, next)) continue;
        // Rank 0 holds the largest blocks, and using it everywhere makes all ranks agree.
        const Cost total =
            cost + cost_of(transition(now[a], next), group_elements(shape, now, a, mesh, 0),
                           mesh.axes()[a].size);
        Placements after = now;
        after[a] = next;
        const auto [known, is_new] = best.try_emplace(after, Visit{total, now});
        if (!is_new) {
          if (known->second.cost <= total) continue;
          open.erase({known->second.cost, after});
          known->second = {total, now};
        }
        open.insert({total, after});
      }
    }
  }
  std::vector<Placements> path{to};
  while (path.back() != from) path.push_back(best.at(path.back()).before);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

std::vector<RedistributeStep> plan_redistribute(const Shape& global_shape, const Placements& from,
                                                const Placements& to, const MeshShape& mesh,
                                                Size rank) {
  check_placements(from, mesh, global_shape.size());
  check_placements(to, mesh, global_shape.size());
  Placements start = from;
  Placements end = to;
  for (std::size_t a = 0; a < mesh.num_axes(); ++a) {
    if (mesh.axes()[a].size == 1) start[a] = end[a] = Placement::replicate();
  }
  std::vector<RedistributeStep> steps;
  if (start == end) return steps;
  const std::vector<Placements> path = cheapest_path(global_shape, start, end, mesh);
  for (std::size_t s = 0; s + 1 < path.size(); ++s) {
    const auto changed = std::mismatch(path[s].begin(), path[s].end(), path[s + 1].begin());
    RedistributeStep step;
    step.axis = static_cast<std::size_t>(changed.first - path[s].begin());
    step.from = *changed.first;
    step.to = *changed.second;
    step.transition = transition(step.from, step.to);
    if (step.transition == Transition::all_to_all) {
      step.payload_elements = num_elements(local_block(global_shape, path[s], mesh, rank).extent);
    } else if (is_collective(step.transition)) {
      step.payload_elements = group_elements(global_shape, path[s], step.axis, mesh, rank);
    }
    steps.push_back(step);
  }
  return steps;
}

}  // namespace tessera
