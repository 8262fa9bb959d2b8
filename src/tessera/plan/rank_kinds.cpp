// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/plan/rank_kinds.hpp>
#include <tessera/plan/work.hpp>

namespace tessera {
namespace {

using Kinds = std::vector<Size>;

/// Numbers for values, in the order in which they first appear.
template <class Value>
class Numbering {
 public:
  Size operator()(const Value& value) {
    return numbers_.try_emplace(value, static_cast<Size>(numbers_.size())).first->second;
  }
  std::size_t size() const { return numbers_.size(); }

 private:
  std::map<Value, Size> numbers_;
};

/// The group of each rank in a set of ranks, numbered.
Kinds groups_of(const Plan& plan, RankSet ranks) {
  const MeshShape& mesh = plan.input.mesh;
  const std::vector<std::size_t> axes = mesh.effective(axes_of(ranks, plan.input));
  Numbering<Size> number;
  Kinds groups;
  for (Size rank = 0; rank < mesh.num_ranks(); ++rank)
    groups.push_back(number(mesh.first_of_group(axes, rank)));
  return groups;
}

/// For each rank which kinds it meets in its group, as a number.
Kinds meetings(const Kinds& groups, const Kinds& kinds) {
  std::vector<std::map<Size, Size>> members;  // how many of each kind, by group
  for (std::size_t r = 0; r < groups.size(); ++r) {
    const auto group = static_cast<std::size_t>(groups[r]);
    if (group >= members.size()) members.resize(group + 1);
    ++members[group][kinds[r]];
  }
  Numbering<std::map<Size, Size>> number;
  Kinds of_group, of_rank;
  for (const auto& met : members) of_group.push_back(number(met));
  for (const Size group : groups) of_rank.push_back(of_group[group]);
  return of_rank;
}

RankKinds collect(const Kinds& of_rank, const std::map<RankSet, Kinds>& groups) {
  RankKinds kinds{of_rank, {}, {}, {}};
  const double part = 1 / static_cast<double>(of_rank.size());
  for (std::size_t r = 0; r < of_rank.size(); ++r) {
    const auto kind = static_cast<std::size_t>(of_rank[r]);
    if (kind == kinds.first.size()) {
      kinds.first.push_back(static_cast<Size>(r));
      kinds.share.push_back(0);
    }
    kinds.share[kind] += part;
  }
  for (const auto& [set, of] : groups) {
    std::map<Size, Size> lowest;  // kind, by group
    for (std::size_t r = 0; r < of.size(); ++r) {
      const auto [at, is_new] = lowest.try_emplace(of[r], of_rank[r]);
      if (!is_new) at->second = std::min(at->second, of_rank[r]);
    }
    for (const Size first : kinds.first) kinds.leader[set].push_back(lowest.at(of[first]));
  }
  return kinds;
}

}  // namespace

/// Kinds are parted by what they meet until that parts none any more.
RankKinds rank_kinds(const Plan& plan) {
  std::map<RankSet, Kinds> groups;
  for (const RankSet set : rank_sets)
    if (plan.input.mesh.group_size(axes_of(set, plan.input)) > 1)
      groups.emplace(set, groups_of(plan, set));
  Kinds kinds = ranks_with_equal_work(plan);
  std::size_t count = 0;
  for (;;) {
    std::vector<std::vector<Size>> seen;
    for (const Size kind : kinds) seen.push_back({kind});
    for (const auto& [set, of] : groups) {
      const Kinds met = meetings(of, kinds);
      for (std::size_t r = 0; r < met.size(); ++r) seen[r].push_back(met[r]);
    }
    Numbering<std::vector<Size>> number;
    for (std::size_t r = 0; r < seen.size(); ++r) kinds[r] = number(seen[r]);
    if (number.size() == count) return collect(kinds, groups);
    count = number.size();
  }
}

}  // namespace tessera
