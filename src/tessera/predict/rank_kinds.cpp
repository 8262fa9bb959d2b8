// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/predict/rank_kinds.hpp>
#include <tessera/predict/work.hpp>

namespace tessera {
namespace {

using Kinds = std::vector<Size>;  // by box, or by group

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

/// The groups of a RankSet. A box of ranks lies in one group of boxes, which stands for groups of
/// ranks of the same composition.
struct SetGroups {
  std::vector<Size> of_box;  ///< by box, the number of its group
  std::vector<Size> ranks;   ///< by box, the number of its ranks in one group of ranks
};

SetGroups groups_of(const Plan& plan, const RankBoxes& boxes, RankSet set) {
  const std::vector<std::size_t> axes = plan.input.mesh.effective(axes_of(set, plan.input));
  Numbering<Size> number;
  SetGroups groups;
  for (Size box = 0; box < boxes.size(); ++box) {
    groups.of_box.push_back(number(boxes.mesh().first_of_group(axes, box)));
    groups.ranks.push_back(boxes.group_size(box, axes));
  }
  return groups;
}

/// Returns a number for each box. Boxes get the same number if their groups contain equal numbers
/// of ranks of each kind.
Kinds meetings(const SetGroups& groups, const Kinds& kinds) {
  std::vector<std::map<Size, Size>> members;  // by group: number of ranks of each kind
  for (std::size_t b = 0; b < kinds.size(); ++b) {
    const auto group = static_cast<std::size_t>(groups.of_box[b]);
    if (group >= members.size()) members.resize(group + 1);
    members[group][kinds[b]] += groups.ranks[b];
  }
  Numbering<std::map<Size, Size>> number;
  Kinds of_group, of_box;
  for (const auto& met : members) of_group.push_back(number(met));
  for (const Size group : groups.of_box) of_box.push_back(of_group[group]);
  return of_box;
}

/// Makes the result from the kind of each box.
RankKinds collect(const RankBoxes& boxes, const Kinds& of_box,
                  const std::map<RankSet, SetGroups>& sets) {
  RankKinds kinds;
  std::vector<RankBoxes::Group> members;
  for (Size box = 0; box < boxes.size(); ++box) {
    const auto kind = static_cast<std::size_t>(of_box[box]);
    if (kind == members.size()) members.emplace_back();
    members[kind].push_back(box);
  }
  const Size all = boxes.num_ranks(boxes.all());
  for (const RankBoxes::Group& group : members) {
    kinds.first.push_back(boxes.first_rank(group.front()));
    kinds.share.push_back(static_cast<double>(boxes.num_ranks(group)) / static_cast<double>(all));
  }
  for (const auto& [set, groups] : sets) {
    std::map<Size, Size> lowest;  // by group: its lowest kind
    for (std::size_t b = 0; b < of_box.size(); ++b) {
      const auto [at, is_new] = lowest.try_emplace(groups.of_box[b], of_box[b]);
      if (!is_new) at->second = std::min(at->second, of_box[b]);
    }
    for (const RankBoxes::Group& group : members)
      kinds.leader[set].push_back(lowest.at(groups.of_box[group.front()]));
  }
  return kinds;
}

}  // namespace

/// Partition refinement: begins with ranks of equal work, and splits kinds whose ranks have groups
/// of different composition, until no kind splits any more.
RankKinds rank_kinds(const Plan& plan) {
  const EqualWork equal = ranks_with_equal_work(plan);
  std::map<RankSet, SetGroups> sets;
  for (const RankSet set : rank_sets)
    if (plan.input.mesh.group_size(axes_of(set, plan.input)) > 1)
      sets.emplace(set, groups_of(plan, equal.boxes, set));
  Kinds kinds = equal.first;
  std::size_t count = 0;
  for (;;) {
    std::vector<std::vector<Size>> seen;
    for (const Size kind : kinds) seen.push_back({kind});
    for (const auto& [set, groups] : sets) {
      const Kinds met = meetings(groups, kinds);
      for (std::size_t b = 0; b < met.size(); ++b) seen[b].push_back(met[b]);
    }
    Numbering<std::vector<Size>> number;
    for (std::size_t b = 0; b < seen.size(); ++b) kinds[b] = number(seen[b]);
    if (number.size() == count) return collect(equal.boxes, kinds, sets);
    count = number.size();
  }
}

}  // namespace tessera
