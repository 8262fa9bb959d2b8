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

nlohmann::json share_json(const Share& share) {
  return {{"max_rank_seconds", share.max_rank}, {"mean_rank_seconds", share.mean_rank}};
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

  std::vector<double> compute(n), communication(n), idle(n), optimizer(n), other(n), step(n);
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
    step[r] = ranks[r].step;
    other[r] = std::max(0.0, step[r] - compute[r] - optimizer[r] - communication[r] - idle[r]);
  }
  Breakdown result;
  result.steps = steps;
  result.step = share_of(step, steps).mean_rank;
  result.compute = share_of(compute, steps);
  result.communication = share_of(communication, steps);
  result.idle = share_of(idle, steps);
  result.optimizer = share_of(optimizer, steps);
  result.other = share_of(other, steps);
  for (const auto& [kind, time] : kinds) result.calls.push_back(time);
  return result;
}

nlohmann::json to_json(const RankTrace& trace) {
  nlohmann::json calls = nlohmann::json::array();
  for (const TracedCall& call : trace.calls)
    calls.push_back({call.axis, static_cast<int>(call.operation), call.seconds, call.begin});
  nlohmann::json regions = nlohmann::json::array();
  for (const TracedRegion& region : trace.regions)
    regions.push_back({region.name, region.begin, region.seconds});
  return {{"step", trace.step},
          {"compute", trace.compute},
          {"optimizer", trace.optimizer},
          {"calls", calls},
          {"regions", regions}};
}

RankTrace trace_from_json(const nlohmann::json& document) {
  RankTrace trace{document.at("step"), document.at("compute"), document.at("optimizer"), {}};
  for (const nlohmann::json& call : document.at("calls"))
    trace.calls.push_back({call[0], static_cast<Operation>(call[1].get<int>()), call[2], call[3]});
  for (const nlohmann::json& region : document.at("regions"))
    trace.regions.push_back({region[0], region[1], region[2]});
  return trace;
}

nlohmann::json to_json(const Breakdown& breakdown) {
  return {{"steps", breakdown.steps},
          {"step_seconds", breakdown.step},
          {"compute", share_json(breakdown.compute)},
          {"communication", share_json(breakdown.communication)},
          {"idle", share_json(breakdown.idle)},
          {"optimizer", share_json(breakdown.optimizer)},
          {"other", share_json(breakdown.other)}};
}

}  // namespace tessera::bench
