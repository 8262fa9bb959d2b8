// SPDX-License-Identifier: Apache-2.0
#include "measure/breakdown.hpp"

#include <algorithm>
#include <map>

#include <tessera/base/text.hpp>

namespace tessera::bench {
namespace {

using Kind = std::pair<std::string, Operation>;
using CallsByKind = std::map<Kind, std::vector<double>>;  ///< seconds, in the order of the calls

CallsByKind by_kind(const RankTrace& trace) {
  CallsByKind calls;
  for (const TracedCall& call : trace.calls)
    calls[{call.axis, call.operation}].push_back(call.seconds);
  return calls;
}

double sum(const std::vector<double>& values) {
  double total = 0;
  for (const double value : values) total += value;
  return total;
}

/// Seconds that `rank` waited for others, in each of its calls of one kind.
std::vector<double> waits(const std::vector<CallsByKind>& ranks, const MeshShape& mesh,
                          const Kind& kind, Size rank) {
  const std::vector<double>& mine = ranks[rank].at(kind);
  std::vector<double> waited(mine.size(), 0);
  if (is_point_to_point(kind.second)) return waited;
  std::vector<double> shortest = mine;
  for (const Size member : group_of(mesh, kind.first, rank)) {
    const auto found = ranks[member].find(kind);
    if (found == ranks[member].end() || found->second.size() != mine.size()) return waited;
    for (std::size_t i = 0; i < mine.size(); ++i)
      shortest[i] = std::min(shortest[i], found->second[i]);
  }
  for (std::size_t i = 0; i < mine.size(); ++i) waited[i] = mine[i] - shortest[i];
  return waited;
}

Share share_of(const std::vector<double>& ranks, Size steps) {
  const double n = static_cast<double>(ranks.size());
  return {*std::max_element(ranks.begin(), ranks.end()) / static_cast<double>(steps),
          sum(ranks) / n / static_cast<double>(steps)};
}

}  // namespace

std::vector<Size> group_of(const MeshShape& mesh, const std::string& axis, Size rank) {
  const std::vector<std::string> names = split_text(axis, '+');
  const bool is_known = std::all_of(names.begin(), names.end(),
                                    [&](const auto& name) { return mesh.find(name).has_value(); });
  std::vector<Size> group;
  for (Size other = 0; other < mesh.num_ranks(); ++other) {
    bool belongs = true;
    for (std::size_t a = 0; is_known && a < mesh.num_axes(); ++a) {
      const bool is_free = std::count(names.begin(), names.end(), mesh.axes()[a].name) > 0;
      belongs &= is_free || mesh.coordinate(other, a) == mesh.coordinate(rank, a);
    }
    if (belongs) group.push_back(other);
  }
  return group;
}

std::vector<std::vector<double>> waits_of_calls(const MeshShape& mesh,
                                                const std::vector<RankTrace>& ranks) {
  std::vector<CallsByKind> calls;
  for (const RankTrace& trace : ranks) calls.push_back(by_kind(trace));
  std::vector<std::vector<double>> all(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    CallsByKind waited;
    std::map<Kind, std::size_t> next;
    for (const auto& [kind, seconds] : calls[r])
      waited[kind] = waits(calls, mesh, kind, static_cast<Size>(r));
    for (const TracedCall& call : ranks[r].calls) {
      const Kind kind{call.axis, call.operation};
      all[r].push_back(waited[kind][next[kind]++]);
    }
  }
  return all;
}

Breakdown break_down(const MeshShape& mesh, const std::vector<RankTrace>& ranks, Size steps) {
  const std::size_t n = ranks.size();
  std::vector<CallsByKind> calls;
  for (const RankTrace& trace : ranks) calls.push_back(by_kind(trace));

  std::vector<double> compute(n), communication(n), idle(n), optimizer(n), other(n), step(n),
      products(n);
  std::map<Kind, CallTime> kinds;
  const double per_rank_and_step = 1 / static_cast<double>(n) / static_cast<double>(steps);
  for (std::size_t r = 0; r < n; ++r) {
    for (const auto& [kind, seconds] : calls[r]) {
      const double waited = sum(waits(calls, mesh, kind, static_cast<Size>(r)));
      const double moving = sum(seconds) - waited;
      communication[r] += moving;
      idle[r] += waited;
      CallTime& total = kinds.try_emplace(kind, CallTime{kind.first, kind.second}).first->second;
      total.calls += static_cast<double>(seconds.size()) * per_rank_and_step;
      total.seconds += moving * per_rank_and_step;
      total.waiting += waited * per_rank_and_step;
    }
    compute[r] = ranks[r].compute;
    optimizer[r] = ranks[r].optimizer;
    products[r] = ranks[r].products;
    step[r] = ranks[r].step;
    other[r] = std::max(0.0, step[r] - compute[r] - optimizer[r] - communication[r] - idle[r]);
  }
  Breakdown result;
  result.steps = steps;
  result.step_seconds = share_of(step, steps).mean_rank_seconds;
  result.compute = share_of(compute, steps);
  result.communication = share_of(communication, steps);
  result.idle = share_of(idle, steps);
  result.optimizer = share_of(optimizer, steps);
  result.other = share_of(other, steps);
  result.products = share_of(products, steps);
  for (const auto& [kind, time] : kinds) result.calls.push_back(time);
  return result;
}

}  // namespace tessera::bench
