// SPDX-License-Identifier: Apache-2.0
#include "measure/breakdown.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <tessera/base/text.hpp>

namespace tessera::bench {
namespace {

using Kind = std::pair<std::string, Operation>;
}  // namespace

std::vector<Size> group_of(const MeshShape& mesh, const std::string& axis, Size rank) {
  std::vector<std::size_t> axes;
  for (const std::string& name : split_text(axis, '+')) {
    const auto found = mesh.find(name);
    if (found) {
      axes.push_back(*found);
      continue;
    }
    axes.resize(mesh.num_axes());
    std::iota(axes.begin(), axes.end(), std::size_t{0});
    break;
  }
  return mesh.group(axes, rank);
}

void find_waits(const MeshShape& mesh, std::vector<RankTrace>& ranks) {
  std::vector<std::map<Kind, std::vector<TracedCall*>>> calls(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (TracedCall& call : ranks[r].calls)
      if (!call.in_pass || !is_point_to_point(call.operation))
        calls[r][{call.axis, call.operation}].push_back(&call);
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (const auto& [kind, mine] : calls[r]) {
      const std::vector<Size> group = group_of(mesh, kind.first, static_cast<Size>(r));
      if (is_point_to_point(kind.second)) {
        double shortest = mine.front()->seconds;
        for (const Size member : group)
          for (const TracedCall* call : calls[member][kind])
            shortest = std::min(shortest, call->seconds);
        for (TracedCall* call : mine) call->waiting = call->seconds - shortest;
        continue;
      }
      const std::size_t n = mine.size();
      if (!std::all_of(group.begin(), group.end(),
                       [&, &kind = kind](Size member) { return calls[member][kind].size() == n; }))
        continue;
      for (std::size_t i = 0; i < n; ++i) {
        double shortest = mine[i]->seconds;
        for (const Size member : group)
          shortest = std::min(shortest, calls[member][kind][i]->seconds);
        mine[i]->waiting = mine[i]->seconds - shortest;
      }
    }
}

Breakdown break_down(const std::vector<RankTrace>& ranks, Size steps) {
  const double per_step = 1 / static_cast<double>(steps);
  const double per_rank_and_step = per_step / static_cast<double>(ranks.size());
  const auto add = [&](Share& share, double seconds) {
    share.max_rank_seconds = std::max(share.max_rank_seconds, seconds * per_step);
    share.mean_rank_seconds += seconds * per_rank_and_step;
  };
  Breakdown result;
  result.steps = steps;
  std::map<Kind, CallTime> kinds;
  for (const RankTrace& rank : ranks) {
    double communication = 0, idle = 0;
    for (const TracedCall& call : rank.calls) {
      const double moving = call.seconds - call.waiting;
      communication += moving;
      idle += call.waiting;
      CallTime& total =
          kinds.try_emplace({call.axis, call.operation}, CallTime{call.axis, call.operation})
              .first->second;
      total.calls += per_rank_and_step;
      total.seconds += moving * per_rank_and_step;
      total.waiting += call.waiting * per_rank_and_step;
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
