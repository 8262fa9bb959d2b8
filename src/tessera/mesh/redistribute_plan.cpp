// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include <tessera/mesh/redistribute_plan.hpp>

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

/// Placements as a key for ordered containers: Replicate -2, Partial -1, Shard its dimension.
std::vector<int> key_of(const Placements& placements) {
  std::vector<int> key;
  for (const Placement& p : placements) {
    key.push_back(p.is_shard() ? p.dim() : (p.is_partial() ? -1 : -2));
  }
  return key;
}

struct Visit {
  Cost cost;
  Placements placements;
  Placements before;
};

/// Shortest path over placements (Dijkstra); returns every state on it, `from` first.
std::vector<Placements> cheapest_path(const Shape& shape, const Placements& from,
                                      const Placements& to, const MeshShape& mesh) {
  std::map<std::vector<int>, Visit> best;
  std::set<std::pair<Cost, std::vector<int>>> open;
  best[key_of(from)] = {{}, from, from};
  open.insert({Cost{}, key_of(from)});
  while (open.begin()->second != key_of(to)) {
    const auto [cost, key] = *open.begin();
    open.erase(open.begin());
    const Placements now = best.at(key).placements;
    for (std::size_t a = 0; a < now.size(); ++a) {
      for (const Placement next : {Placement::replicate(), to[a]}) {
        if (next == now[a] || is_blocked(now, a, next)) continue;
        // Rank 0 holds the largest blocks, and using it everywhere makes all ranks agree.
        const Cost step = cost_of(transition(now[a], next), group_elements(shape, now, a, mesh, 0),
                                  mesh.axes()[a].size);
        Placements after = now;
        after[a] = next;
        const std::vector<int> after_key = key_of(after);
        const auto known = best.find(after_key);
        if (known != best.end()) {
          if (known->second.cost <= cost + step) continue;
          open.erase({known->second.cost, after_key});
        }
        best[after_key] = {cost + step, after, now};
        open.insert({cost + step, after_key});
      }
    }
  }
  std::vector<Placements> path{to};
  while (path.back() != from) path.push_back(best.at(key_of(path.back())).before);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

std::string_view name_of(Transition t) {
  constexpr std::array<std::string_view, 8> names = {
      "keep", "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "slice", "mask", "embed"};
  return names.at(static_cast<std::size_t>(t));
}

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
