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

/// Numbers for lists of sizes: equal lists get equal numbers.
class Classes {
 public:
  int of(const std::vector<Size>& sizes) {
    return known_.try_emplace(sizes, static_cast<int>(known_.size())).first->second;
  }

 private:
  std::map<std::vector<Size>, int> known_;
};

bool same_place(const TensorPlan& a, const TensorPlan& b) {
  return a.shape == b.shape && a.placements == b.placements && a.in_shares == b.in_shares &&
         (!a.in_shares || a.layer == b.layer);
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
  for (Size c = 0; c < mesh.size_of("model"); ++c)
    local_.push_back(plan.layouts.local_model(plan.input.model, c));
}

RankGroups::Numbers RankGroups::part_on(const TensorPlan& tensor, Size rank) const {
  std::array<Size, 2> extent{1, 1};
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) extent[d] = tensor.shape[d];
  const std::vector<Axis>& axes = plan_.input.mesh.axes();
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (const Placement& placement = tensor.placements[a]; placement.is_shard()) {
      Size& n = extent[static_cast<std::size_t>(placement.dim())];
      n = balanced_split(n, axes[a].size, coordinates_[a][rank]).count;
    }
  }
  if (!tensor.in_shares) return {extent[0], extent[1], extent[0] * extent[1]};
  const ModelSpec& local = local_[static_cast<std::size_t>(model_[rank])];
  const Range share =
      balanced_split(local.layers[tensor.layer].num_parameters(), shards_, shard_[rank]);
  return {extent[0], extent[1], kept_part(tensor, local, share).count};
}

std::vector<RankGroup<LocalPart>> RankGroups::parts(const TensorPlan& tensor) {
  for (const auto& [like, groups] : known_)
    if (same_place(like, tensor)) return groups;
  std::vector<RankGroup<LocalPart>> groups;
  for (auto& group : group_ranks<Numbers>(plan_.input.mesh.num_ranks(),
                                          [&](Size rank) { return part_on(tensor, rank); })) {
    const Numbers& n = group.value;
    const Shape shape = tensor.shape.size() == 1 ? Shape{n.rows} : Shape{n.rows, n.columns};
    groups.push_back({{shape, n.kept}, std::move(group.ranks)});
  }
  known_.emplace_back(tensor, groups);
  return groups;
}

std::vector<std::vector<int>> RankGroups::alike() const {
  // Extents along `model`, then the sizes of shares, then rows: each as a number.
  Classes widths, shares;
  std::vector<int> width_class;
  for (const ModelSpec& local : local_) {
    std::vector<Size> sizes;
    for (const LinearSpec& layer : local.layers) {
      sizes.push_back(layer.in);
      sizes.push_back(layer.out);
    }
    width_class.push_back(widths.of(sizes));
  }
  std::map<std::pair<int, int>, int> share_class;
  const auto class_of_share = [&](Size rank) {
    const int model = model_[rank];
    const auto [at, is_new] = share_class.try_emplace({width_class[model], shard_[rank]}, 0);
    if (!is_new) return at->second;
    std::vector<Size> sizes;
    for (const LinearSpec& layer : local_[static_cast<std::size_t>(model)].layers)
      sizes.push_back(balanced_split(layer.num_parameters(), shards_, shard_[rank]).count);
    return at->second = shares.of(sizes);
  };
  std::vector<std::vector<int>> groups;
  for (auto& group : group_ranks<std::array<Size, 5>>(
           plan_.input.mesh.num_ranks(), [&](Size rank) -> std::array<Size, 5> {
             // Sequence parallel ranks have their own rows of a microbatch.
             const LocalRows rows = plan_.local_rows(rank);
             const Size own =
                 balanced_split(rows.microbatch, rows.model_ranks, rows.model_coordinate).count;
             return {width_class[model_[rank]], class_of_share(rank), plan_.rows(rank).count,
                     plan_.data_rows(rank), plan_.input.sequence_parallel ? own : 0};
           }))
    groups.push_back(std::move(group.ranks));
  return groups;
}

}  // namespace tessera
