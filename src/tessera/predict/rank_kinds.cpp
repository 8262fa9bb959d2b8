// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/predict/rank_kinds.hpp>

namespace tessera {
namespace {

/// Numbers values in the order in which they first appear.
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

/// A group of classes stands for the groups of ranks of a call that have one composition.
struct ClassInGroup {
  Size group = 0;  ///< lowest class of the group
  Size ranks = 0;  ///< ranks of the class in one group of ranks
};
using SetGroups = std::vector<ClassInGroup>;  ///< by class
using Kinds = std::vector<Size>;              ///< by class

SetGroups groups_of(const RankClasses& classes, AxisSet axes) {
  SetGroups groups;
  for (Size c = 0; c < classes.mesh().num_ranks(); ++c)
    groups.push_back({classes.mesh().first_of_group(axes, c), classes.group_size(c, axes)});
  return groups;
}

/// Splits kinds whose ranks have groups with other numbers of ranks of some kind.
Kinds refined(const Kinds& kinds, const std::map<AxisSet, SetGroups>& sets) {
  std::vector<std::vector<Size>> seen;  // by class, its kind and the compositions of its groups
  for (const Size kind : kinds) seen.push_back({kind});
  for (const auto& [set, groups] : sets) {
    std::map<Size, std::map<Size, Size>> members;  // by group and kind, the number of ranks
    for (std::size_t c = 0; c < kinds.size(); ++c)
      members[groups[c].group][kinds[c]] += groups[c].ranks;
    Numbering<std::map<Size, Size>> composition;
    std::map<Size, Size> of_group;
    for (const auto& [group, met] : members) of_group[group] = composition(met);
    for (std::size_t c = 0; c < kinds.size(); ++c) seen[c].push_back(of_group[groups[c].group]);
  }
  Numbering<std::vector<Size>> number;
  Kinds result;
  for (const std::vector<Size>& one : seen) result.push_back(number(one));
  return result;
}

}  // namespace

/// Partition refinement: begins with ranks of equal work, and splits kinds until none splits any
/// more.
RankKinds rank_kinds(const Plan& plan) {
  const MeshShape& mesh = plan.input.mesh;
  const auto alike = group_alike(plan, plan.input.clips_by_norm);
  const RankClasses& classes = alike.ranks;
  std::map<AxisSet, SetGroups> sets;
  for (const AxisSet axes : axes_of_calls(plan))
    if (mesh.group_size(axes) > 1) sets.emplace(axes, groups_of(classes, axes));
  Kinds kinds(static_cast<std::size_t>(classes.mesh().num_ranks()));
  for (std::size_t g = 0; g < alike.groups.size(); ++g)
    for (const Size c : alike.groups[g].classes) kinds[c] = static_cast<Size>(g);
  for (Kinds finer = refined(kinds, sets); finer != kinds; finer = refined(kinds, sets))
    kinds = std::move(finer);
  RankKinds result;
  for (std::size_t c = 0; c < kinds.size(); ++c) {
    const auto number = static_cast<Size>(c);
    if (static_cast<std::size_t>(kinds[c]) == result.size()) {
      result.first.push_back(classes.first_rank(number));
      result.share.push_back(0);
    }
    result.share[kinds[c]] += static_cast<double>(classes.num_ranks({number}));
  }
  for (double& share : result.share) share /= static_cast<double>(mesh.num_ranks());
  for (const auto& [set, groups] : sets) {
    std::map<Size, Size> lowest;  // by group, its lowest kind
    for (std::size_t c = 0; c < kinds.size(); ++c) {
      const auto [at, is_new] = lowest.try_emplace(groups[c].group, kinds[c]);
      if (!is_new) at->second = std::min(at->second, kinds[c]);
    }
    std::vector<Size>& leader = result.leader[set];
    leader.resize(result.size());
    for (std::size_t c = 0; c < kinds.size(); ++c) leader[kinds[c]] = lowest.at(groups[c].group);
  }
  return result;
}

}  // namespace tessera
