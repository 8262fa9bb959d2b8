// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <tessera/base/split.hpp>
#include <tessera/base/text.hpp>
#include <tessera/plan/rank_groups.hpp>

namespace tessera {
namespace {

constexpr std::size_t shown_ranges = 6;

bool same_place(const Slot& a, const Slot& b) {
  return a.shape == b.shape && a.placements == b.placements && a.in_shares == b.in_shares &&
         (!a.in_shares || a.parameter == b.parameter);
}

}  // namespace

std::string describe_ranks(const std::vector<int>& ranks, Size num_ranks) {
  if (static_cast<Size>(ranks.size()) == num_ranks) return "every rank";
  std::size_t shown = 1, ranges = 1;
  while (shown < ranks.size() && ranges <= shown_ranges) {
    if (ranks[shown] != ranks[shown - 1] + 1) ++ranges;
    if (ranges <= shown_ranges) ++shown;
  }
  const std::string text =
      (ranks.size() == 1 ? "rank " : "ranks ") + number_ranges(std::span(ranks).first(shown));
  if (shown == ranks.size()) return text;
  return fmt::format("{},... ({} ranks)", text, with_thousands(static_cast<Size>(ranks.size())));
}

RankGroups::RankGroups(const Plan& plan) : plan_(plan) {
  const MeshShape& mesh = plan.input.mesh;
  const Size ranks = mesh.num_ranks();
  const std::vector<std::string> sharding = shard_axes(plan.input.strategy, mesh);
  shards_ = mesh.group_size(sharding);
  shard_.assign(static_cast<std::size_t>(ranks), 0);
  model_ = shard_;
  Size stride = ranks;  // ranks between neighbours along the axis
  for (const Axis& axis : mesh.axes()) {
    stride /= axis.size;
    std::vector<int>& along = coordinates_.emplace_back(static_cast<std::size_t>(ranks));
    const bool shards = std::find(sharding.begin(), sharding.end(), axis.name) != sharding.end();
    for (Size rank = 0; rank < ranks; ++rank) {
      const int at = static_cast<int>(rank / stride % axis.size);
      along[rank] = at;
      if (shards) shard_[rank] = shard_[rank] * static_cast<int>(axis.size) + at;
      if (axis.name == "model") model_[rank] = at;
    }
  }
}

RankGroups::Numbers RankGroups::part_on(const Slot& slot, Size rank) const {
  // Dimensions in front of the last are one: only two are ever split.
  std::array<Size, 2> extent{1, slot.shape.back()};
  std::array<Size, 8> dims{};
  for (std::size_t d = 0; d < slot.shape.size(); ++d) dims[d] = slot.shape[d];
  const std::vector<Axis>& axes = plan_.input.mesh.axes();
  for (std::size_t a = 0; a < axes.size(); ++a)
    if (const Placement& placement = slot.placements[a]; placement.is_shard()) {
      Size& n = dims[static_cast<std::size_t>(placement.dim())];
      n = balanced_split(n, axes[a].size, coordinates_[a][rank]).count;
    }
  Size elements = 1;
  for (std::size_t d = 0; d < slot.shape.size(); ++d) elements *= dims[d];
  extent[1] = dims[slot.shape.size() - 1];
  for (std::size_t d = 0; d + 1 < slot.shape.size(); ++d) extent[0] *= dims[d];
  if (!slot.in_shares) return {extent[0], extent[1], elements};
  const ParameterLayout& layout = plan_.stages.front().parameters;
  const ParameterPlan& parameter = layout.parameters[slot.parameter];
  const Range share = balanced_split(layout.buckets[parameter.bucket].elements, shards_, shard_[rank]);
  return {extent[0], extent[1], intersection({parameter.place.begin, elements}, share).count};
}

std::vector<RankGroup<LocalPart>> RankGroups::parts(const Slot& slot) {
  for (const auto& [like, groups] : known_)
    if (same_place(like, slot)) return groups;
  std::vector<RankGroup<LocalPart>> groups;
  for (auto& group : group_ranks<Numbers>(plan_.input.mesh.num_ranks(),
                                          [&](Size rank) { return part_on(slot, rank); })) {
    const Numbers& n = group.value;
    const Shape shape = slot.shape.size() == 1 ? Shape{n.columns} : Shape{n.rows, n.columns};
    groups.push_back({{shape, n.kept}, std::move(group.ranks)});
  }
  known_.emplace_back(slot, groups);
  return groups;
}

std::vector<std::vector<int>> RankGroups::alike() const {
  const StagePlan& stage = plan_.stages.front();
  const std::vector<int> shares = classes_of_shares();
  // Buckets and frames are equal on all ranks of `model`; only what an all-to-all carries is not.
  const bool by_coordinate =
      std::any_of(stage.actions.begin(), stage.actions.end(), [&](const Action& action) {
        return action.kind == ActionKind::redistribute &&
               transition(stage.slots[action.reads[0]].along_model,
                          stage.slots[action.writes[0]].along_model) == Transition::all_to_all;
      });
  std::vector<std::vector<int>> groups;
  for (auto& group : group_ranks<std::array<Size, 4>>(
           plan_.input.mesh.num_ranks(), [&](Size rank) -> std::array<Size, 4> {
             return {by_coordinate ? model_[rank] : 0, shares[shard_[rank]], plan_.rows(rank).count,
                     plan_.data_rows(rank)};
           }))
    groups.push_back(std::move(group.ranks));
  return groups;
}

/// Equal numbers for shards that keep as much of each bucket, and sum up as much over `model`.
std::vector<int> RankGroups::classes_of_shares() const {
  const ParameterLayout& layout = plan_.stages.front().parameters;
  std::map<std::vector<Size>, int> known;
  std::vector<int> classes;
  for (Size shard = 0; shard < shards_; ++shard) {
    std::vector<Size> sizes;
    for (const BucketPlan& bucket : layout.buckets)
      sizes.push_back(balanced_split(bucket.elements, shards_, shard).count);
    for (const UnitPlan& unit : layout.units) {
      const Size elements = layout.buckets[unit.bucket].elements;
      sizes.push_back(intersection(unit.own_rows, balanced_split(elements, shards_, shard)).count);
    }
    classes.push_back(known.try_emplace(sizes, static_cast<int>(known.size())).first->second);
  }
  return classes;
}

}  // namespace tessera
