// SPDX-License-Identifier: Apache-2.0
#include "measure/breakdown.hpp"

#include <algorithm>
#include <map>

namespace tessera::bench {
namespace {

using Kind = std::pair<std::string, Operation>;

}  // namespace

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
