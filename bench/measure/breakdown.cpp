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
  const std::vector<std::vector<double>> waits = waits_of_calls(mesh, ranks);
  const double per_step = 1 / static_cast<double>(steps);
  const double per_rank_and_step = per_step / static_cast<double>(ranks.size());
  const auto add = [&](Share& share, double seconds) {
    share.max_rank_seconds = std::max(share.max_rank_seconds, seconds * per_step);
    share.mean_rank_seconds += seconds * per_rank_and_step;
  };
  Breakdown result;
  result.steps = steps;
  std::map<Kind, CallTime> kinds;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RankTrace& rank = ranks[r];
    double communication = 0, idle = 0;
    for (std::size_t i = 0; i < rank.calls.size(); ++i) {
      const TracedCall& call = rank.calls[i];
      const double waited = waits[r][i], moving = call.seconds - waited;
      communication += moving;
      idle += waited;
      CallTime& total =
          kinds.try_emplace({call.axis, call.operation}, CallTime{call.axis, call.operation})
              .first->second;
      total.calls += per_rank_and_step;
      total.seconds += moving * per_rank_and_step;
      total.waiting += waited * per_rank_and_step;
    }
    add(result.compute, rank.compute);
    add(result.communication, communication);
    add(result.idle, idle);
    add(result.optimizer, rank.optimizer);
    add(result.other,
        std::max(0.0, rank.step - rank.compute - rank.optimizer - communication - idle));
    add(result.products, rank.products);
    result.step_seconds += rank.step * per_rank_and_step;
  }
  for (const auto& [kind, time] : kinds) result.calls.push_back(time);
  return result;
}

}  // namespace tessera::bench
