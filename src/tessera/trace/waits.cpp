// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <tessera/base/text.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/trace/waits.hpp>

namespace tessera {

AxisSet axes_of_group(const MeshShape& mesh, const std::string& name) {
  AxisSet axes;
  for (const std::string& axis : split_text(name, '+'))
    if (const auto found = mesh.find(axis)) axes = axes | AxisSet{*found};
  return axes.empty() ? mesh.all_axes() : axes;
}

void find_waits(const MeshShape& mesh, std::vector<RankTrace>& ranks) {
  using Calls = std::vector<TracedCall*>;
  // The calls of each rank that has made some, by axis, operation and first rank of the group.
  std::map<std::tuple<std::string, Operation, Size>, std::vector<Calls>> groups;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    std::map<std::pair<std::string, Operation>, Calls> own;
    for (TracedCall& call : ranks[r].calls)
      if (!call.in_pass || !is_point_to_point(call.operation))
        own[{call.axis, call.operation}].push_back(&call);
    for (auto& [kind, calls] : own) {
      const Size first = mesh.first_of_group(axes_of_group(mesh, kind.first), static_cast<Size>(r));
      groups[{kind.first, kind.second, first}].push_back(std::move(calls));
    }
  }
  for (const auto& [key, members] : groups) {
    const bool has_messages = is_point_to_point(std::get<Operation>(key));
    const std::size_t n = members.front().size();
    const Size size = mesh.group_size(axes_of_group(mesh, std::get<std::string>(key)));
    const auto differs = [n](const Calls& calls) { return calls.size() != n; };
    if (!has_messages &&
        (std::ssize(members) != size || std::any_of(members.begin(), members.end(), differs)))
      continue;
    std::vector<double> shortest(has_messages ? 1 : n, HUGE_VAL);
    const auto of_call = [&](std::size_t i) -> double& { return shortest[has_messages ? 0 : i]; };
    for (const Calls& calls : members)
      for (std::size_t i = 0; i < calls.size(); ++i)
        of_call(i) = std::min(of_call(i), calls[i]->seconds);
    for (const Calls& calls : members)
      for (std::size_t i = 0; i < calls.size(); ++i)
        calls[i]->waiting = calls[i]->seconds - of_call(i);
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
