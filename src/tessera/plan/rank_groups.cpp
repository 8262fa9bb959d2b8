// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include <tessera/base/split.hpp>
#include <tessera/base/text.hpp>
#include <tessera/plan/rank_groups.hpp>

namespace tessera {
namespace {

constexpr std::size_t shown_ranges = 6;

/// Only what an all-to-all along `model` carries, or a message with a rank's block, depends on the
/// coordinate there: buckets and frames are equal on all its ranks.
bool depends_on_model_coordinate(const StagePlan& stage) {
  return std::any_of(stage.actions.begin(), stage.actions.end(), [&](const Action& action) {
    if (action.peer >= 0) return stage.slots[action.index].along_model.is_shard();
    return action.kind == ActionKind::redistribute &&
           transition(stage.slots[action.reads[0]].along_model,
                      stage.slots[action.writes[0]].along_model) == Transition::all_to_all;
  });
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

std::vector<RankGroup<LocalPart>> parts_of(const Plan& plan, Size stage, const Slot& slot) {
  const MeshShape& mesh = plan.input.mesh;
  const std::vector<std::size_t> sharding = mesh.effective(shard_axes(plan.input.strategy, mesh));
  const ParameterLayout& layout = plan.stages[stage].parameters;
  std::vector<Size> ranks;
  for (Size rank = 0; rank < mesh.num_ranks(); ++rank)
    if (plan.stage_number(rank) == stage) ranks.push_back(rank);
  return group_ranks<LocalPart>(ranks, [&](Size rank) {
    LocalPart part{local_block(slot.shape, slot.placements, mesh, rank).extent};
    part.kept = num_elements(part.shape);
    if (slot.in_shares) {
      const ParameterPlan& parameter = layout.parameters[slot.parameter];
      const Range share =
          balanced_split(layout.buckets[parameter.bucket].elements, mesh.group_size(sharding),
                         mesh.coordinate(rank, sharding));
      part.kept = intersection({parameter.place.begin, part.kept}, share).count;
    }
    return part;
  });
}

std::vector<std::vector<int>> ranks_alike(const Plan& plan) {
  std::vector<char> by_coordinate;  // of each stage
  for (const StagePlan& stage : plan.stages)
    by_coordinate.push_back(depends_on_model_coordinate(stage));
  std::vector<Size> all(plan.input.mesh.num_ranks());
  std::iota(all.begin(), all.end(), Size{0});
  ModelParts parts(plan);
  std::vector<std::vector<int>> groups;
  for (auto& group : group_ranks<std::vector<Size>>(all, [&](Size rank) {
         const Size stage = plan.stage_number(rank);
         const ParameterLayout& layout = plan.stage(rank).parameters;
         std::vector<Size> key{stage, by_coordinate[stage] ? parts(rank) : 0, plan.rows(rank).count,
                               plan.data_rows(rank)};
         const StatePlan state = plan.state(rank);
         for (const BucketPlace& bucket : state.buckets) key.push_back(bucket.share.count);
         for (const UnitPlan& unit : layout.units)
           key.push_back(state.owned_gradients(unit.bucket, unit.own_rows).count);
         return key;
       }))
    groups.push_back(std::move(group.ranks));
  return groups;
}

Size ModelParts::operator()(Size rank) {
  const Size stage = plan_.stage_number(rank), samples = plan_.rows(rank).count;
  const auto [at, is_new] = bounds_.try_emplace({stage, samples});
  if (is_new) at->second = bounds(plan_.stage(rank), samples);
  const std::vector<Size>& bounds = at->second;
  return std::upper_bound(bounds.begin(), bounds.end(), plan_.model_coordinate(rank)) -
         bounds.begin();
}

std::vector<Size> ModelParts::bounds(const StagePlan& stage, Size samples) const {
  const Size ranks = plan_.input.mesh.size_of("model"), passes = plan_.input.microbatches;
  std::vector<Size> all;
  const auto split = [&](const Shape& shape, Placement along) {
    if (along.is_shard()) all.push_back(shape[along.dim()] % ranks);
  };
  for (std::size_t l = 0; l < plan_.layouts.size(); ++l) {
    const LayerSpec& layer = plan_.input.model.layers[l];
    const Layout& layout = plan_.layouts[l];
    for (std::size_t p = 0; p < layer.parameters.size(); ++p)
      split(layer.parameters[p].shape, layout.parameters[p]);
    if (layout.inputs[0].is_shard(1)) split({0, layer.in}, layout.inputs[0]);
    if (layout.output.is_shard(1)) split({0, layer.out}, layout.output);
  }
  for (const Slot& slot : stage.slots)
    if (slot.parameter < 0)
      for (const Size pass : {Size{0}, passes - 1})  // which have most and fewest samples
        split({balanced_split(samples, passes, pass).count * slot.positions, slot.shape[1]},
              slot.along_model);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace tessera
