// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>

#include <tessera/base/text.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/trace/waits.hpp>

namespace tessera {
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
  const Size first = mesh.first_of_group(axes, rank);
  std::vector<Size> group;
  for (Size other = first; other < mesh.num_ranks(); ++other)
    if (mesh.first_of_group(axes, other) == first) group.push_back(other);
  return group;
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
        for (const Size member : group) {
          const auto theirs = calls[member].find(kind);  // a shortened trace may lack the kind
          if (theirs == calls[member].end()) continue;
          for (const TracedCall* call : theirs->second)
            shortest = std::min(shortest, call->seconds);
        }
        for (TracedCall* call : mine) call->waiting = call->seconds - shortest;
        continue;
      }
      const std::size_t n = mine.size();
      if (!std::all_of(group.begin(), group.end(), [&, &kind = kind](Size member) {
            const auto theirs = calls[member].find(kind);
            return theirs != calls[member].end() && theirs->second.size() == n;
          }))
        continue;
      for (std::size_t i = 0; i < n; ++i) {
        double shortest = mine[i]->seconds;
        for (const Size member : group)
          shortest = std::min(shortest, calls[member].at(kind)[i]->seconds);
        mine[i]->waiting = mine[i]->seconds - shortest;
      }
    }
}

std::vector<RankTrace> gather_traces(const Communicator& world, const MeshShape& mesh,
                                     const RankTrace& mine) {
  std::vector<RankTrace> ranks;
  for (const nlohmann::json& trace : gather_json(world, mine))
    ranks.push_back(trace.get<RankTrace>());
  find_waits(mesh, ranks);
  return ranks;
}

}  // namespace tessera
