// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <tessera/base/pair_tree.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/plan/layout/layouts.hpp>
#include <tessera/plan/layout/rank_groups.hpp>

namespace tessera {
namespace {

using Axes = std::vector<std::size_t>;

/// Cuts where ranks' shares of a bucket contain different numbers of elements of `range`.
void cut_range(MeshCuts& cuts, const BucketPlan& bucket, Range range) {
  const Axes& axes = bucket.shares.axes;
  cuts.cut_split(axes, bucket.elements);
  if (range.count == 0) return;
  cuts.cut_around(axes, bucket.elements, range.begin);
  cuts.cut_around(axes, bucket.elements, range.end());
}

/// Returns the experts that the ranks along `expert` split, of which `model` may have taken an
/// equal part.
Size experts_along(const MeshShape& mesh, Size experts, Placement along_model) {
  return along_model.is_shard() ? experts / mesh.size_of("model") : experts;
}

/// Cuts where ranks' shares contain different numbers of elements of a parameter. Two pieces are
/// enough: the first rank of the mesh has the largest one, the last rank the smallest.
void cut_parameter(MeshCuts& cuts, const Plan& plan, const ParameterLayout& layout,
                   const ParameterPlan& parameter) {
  cuts.cut_pieces(parameter.shape, parameter.cuts);
  for (const Size rank : {Size{0}, plan.input.mesh.num_ranks() - 1})
    cut_range(cuts, layout.buckets[parameter.bucket],
              {parameter.place.begin, num_elements(plan.piece(rank, parameter).extent)});
}

/// Returns true if calls depend on the coordinate along `model`. Only an all-to-all along `model`
/// and a message with a rank's own piece do: buckets have equal sizes on all ranks of `model`.
bool depends_on_model_coordinate(const StagePlan& stage) {
  return std::any_of(stage.actions.begin(), stage.actions.end(), [&](const ListedAction& listed) {
    if (const auto* move = listed.as<Move>())
      return move->call && move->call->operation == Operation::all_to_all;
    const auto* message = listed.as<Message>();
    return message != nullptr && stage.slots[message->tensor].along_model.is_shard();
  });
}

}  // namespace

GroupedRanks<LocalPart> parts_of(const Plan& plan, Size stage, const Slot& slot) {
  const MeshShape& mesh = plan.input.mesh;
  const ParameterLayout& layout = plan.stages[stage].parameters;
  MeshCuts cuts(mesh);
  if (const auto pipeline = mesh.find("pipeline")) cuts.cut_all(*pipeline);
  cuts.cut_pieces(slot.shape, slot.cuts);
  if (slot.in_shares) cut_parameter(cuts, plan, layout, layout.parameters[slot.parameter]);
  RankBoxes boxes(cuts);
  RankBoxes::Group of_stage = boxes.all();
  std::erase_if(of_stage,
                [&](Size box) { return plan.stage_number(boxes.first_rank(box)) != stage; });
  std::vector<RankGroup<LocalPart>> groups =
      group_boxes<LocalPart>(boxes, of_stage, [&](Size rank) {
        LocalPart part{piece(slot.shape, slot.cuts, mesh, rank).extent};
        part.kept = num_elements(part.shape);
        if (slot.in_shares) {
          const ParameterPlan& parameter = layout.parameters[slot.parameter];
          const BucketPlan& bucket = layout.buckets[parameter.bucket];
          const Piece share = piece({bucket.elements}, {bucket.shares}, mesh, rank);
          part.kept =
              intersection({parameter.place.begin, part.kept}, {share.offset[0], share.extent[0]})
                  .count;
        }
        return part;
      });
  return {std::move(boxes), std::move(groups)};
}

RankBoxes equal_ranks(const Plan& plan, bool parameters) {
  const PlanInput& input = plan.input;
  const MeshShape& mesh = input.mesh;
  MeshCuts cuts(mesh);
  if (const auto pipeline = mesh.find("pipeline")) cuts.cut_all(*pipeline);
  const Axes batch = mesh.effective(batch_axes(mesh));
  // Shares of whole grains are not a balanced split. There are at most as many ranks as grains.
  for (const std::size_t axis : batch)
    if (input.numerics.reproducible) cuts.cut_all(axis);
  Cuts of_batch;
  for (const std::size_t axis : batch) of_batch.push_back({0, {axis}});
  for (const Size samples : {input.samples, input.validation_samples})
    cuts.cut_pieces({samples % input.batch_size}, of_batch);
  const std::set<Size> samples = cuts.cut_pieces({input.batch_size}, of_batch).front();
  if (const auto model = mesh.find("model")) {
    cuts.cut(*model, 1);  // the first rank alone counts replicated elements
    ModelClasses classes(plan);
    for (std::size_t stage = 0; stage < plan.stages.size(); ++stage)
      for (const Size of_rank : samples)
        for (const Size bound : classes.bounds(static_cast<Size>(stage), of_rank))
          cuts.cut(*model, bound);
  }
  if (const auto context = mesh.find("context")) cuts.cut_all(*context);
  // The first replica alone writes a checkpoint, and counts replicated elements.
  for (const RankSet replicas : {RankSet::replica, RankSet::expert_replica})
    cuts.cut(mesh.effective(axes_of(replicas, input)), 1);
  if (const auto expert = mesh.find("expert")) cuts.cut(*expert, 1);
  for (const StagePlan& stage : plan.stages) {
    const ParameterLayout& layout = stage.parameters;
    for (const BucketPlan& bucket : layout.buckets)
      cuts.cut_pieces({bucket.elements}, {bucket.shares});
    for (const UnitPlan& unit : layout.units)
      cut_range(cuts, layout.buckets[unit.bucket], unit.partial_gradients);
    for (const ParameterPlan& parameter : layout.parameters)
      cuts.cut_pieces(parameter.shape, parameter.cuts);
    for (std::size_t p = 0; parameters && p < layout.parameters.size(); ++p)
      cut_parameter(cuts, plan, layout, layout.parameters[p]);
  }
  return RankBoxes(cuts);
}

MemoryAndCalls::MemoryAndCalls(const Plan& plan) : plan_(plan), classes_(plan) {
  for (const StagePlan& stage : plan.stages)
    by_coordinate_.push_back(depends_on_model_coordinate(stage));
}

std::vector<Size> MemoryAndCalls::operator()(Size rank) {
  const Size stage = plan_.stage_number(rank);
  std::vector<Size> key{stage,
                        by_coordinate_[stage] ? classes_(rank) : 0,
                        plan_.batch_samples(rank).count,
                        plan_.data_samples(rank),
                        plan_.data_samples(rank, plan_.input.validation_samples),
                        plan_.along(rank).context};
  for (std::size_t l = 0; l < plan_.layouts.size(); ++l)
    if (const Size experts = plan_.input.split_experts(plan_.input.model.layers[l]); experts > 0) {
      const MeshShape& mesh = plan_.input.mesh;
      const std::vector<Size> group = expert_samples(plan_.input, plan_.input.batch_size, rank);
      key.insert(key.end(), group.begin(), group.end());
      const Size here = experts_along(mesh, experts, plan_.layouts[l].output);
      key.push_back(balanced_split(here, mesh.size_of("expert"), plan_.along(rank).expert).count);
      break;
    }
  const StatePlan state = plan_.state(rank);
  for (const BucketPlace& bucket : state.buckets) key.push_back(bucket.share.count);
  for (const UnitPlan& unit : plan_.stage(rank).parameters.units)
    key.push_back(state.owned_gradients(unit.bucket, unit.partial_gradients).count);
  return key;
}

AlikeRanks ranks_alike(const Plan& plan) {
  AlikeRanks alike{equal_ranks(plan, false), {}};
  MemoryAndCalls key(plan);
  for (auto& group : group_boxes<std::vector<Size>>(alike.boxes, alike.boxes.all(), key))
    alike.groups.push_back(std::move(group.boxes));
  return alike;
}

Size most_memory(const Plan& plan) {
  const AlikeRanks alike = ranks_alike(plan);
  Size most = 0;
  for (const RankBoxes::Group& ranks : alike.groups)
    most = std::max(most, plan.memory(alike.first_rank(ranks)).total());
  return most;
}

GroupedRanks<CheckpointBytes> group_checkpoint_bytes(const Plan& plan) {
  RankBoxes boxes = equal_ranks(plan, true);
  auto groups = group_boxes<CheckpointBytes>(
      boxes, boxes.all(), [&](Size rank) { return checkpoint_bytes(plan, rank); });
  return {std::move(boxes), std::move(groups)};
}

Size ModelClasses::operator()(Size rank) {
  const Size stage = plan_.stage_number(rank), samples = plan_.batch_samples(rank).count;
  const std::vector<Size>& own = bounds(stage, samples);
  return std::upper_bound(own.begin(), own.end(), plan_.model_coordinate(rank)) - own.begin();
}

const std::vector<Size>& ModelClasses::bounds(Size stage, Size samples) {
  const auto [at, is_new] = bounds_.try_emplace({stage, samples});
  if (is_new) at->second = find_bounds(plan_.stages[stage], samples);
  return at->second;
}

std::vector<Size> ModelClasses::find_bounds(const StagePlan& stage, Size samples) const {
  const Size ranks = plan_.input.mesh.size_of("model"), ways = plan_.input.mesh.size_of("context"),
             microbatches = plan_.input.microbatches;
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
      for (const Size m : {Size{0}, microbatches - 1})  // with the most and with the fewest samples
        for (const Size c : {Size{0}, ways - 1})        // and positions
          split({balanced_split(samples, microbatches, m).count *
                     balanced_split(slot.positions, ways, c).count,
                 slot.shape[1]},
                slot.along_model);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace tessera
