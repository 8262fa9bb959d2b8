// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <tessera/plan/grains.hpp>
#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/plan/orthogonalization.hpp>

namespace tessera {
namespace {

/// Separates ranks whose parts contain other numbers of elements of a parameter. The first rank of
/// the mesh has the largest piece and the last rank the smallest one. Others differ only in blocks.
void cut_parameter(AxisClasses& classes, const Plan& plan, const ParameterLayout& layout,
                   const ParameterPlan& parameter) {
  const BucketPlan& bucket = layout.buckets[parameter.bucket];
  const MeshShape& mesh = plan.input.mesh;
  std::vector<Size> ranks{mesh.num_ranks() - 1};
  for (Size m = 0; m < (plan.input.numerics.reproducible ? mesh.size_of("model") : 1); ++m)
    ranks.push_back(mesh.rank_at("model", m));
  for (const Size rank : ranks) {
    const Size elements = num_elements(plan.piece(rank, parameter).extent);
    classes.cut_range(bucket.cuts(), bucket.elements, {parameter.place.begin, elements});
  }
}

/// Separates ranks with other numbers of samples. Returns the numbers of samples of a batch.
std::set<Size> cut_samples(AxisClasses& classes, const PlanInput& input) {
  const AxisSet axes = batch_axes(input.mesh);
  if (input.numerics.reproducible) {  // whole grains are no balanced split
    classes.separate(axes);
    return {input.batch_size};
  }
  Cuts cuts;
  for (const std::size_t axis : axes) cuts.push_back({0, {axis}});
  for (const Size samples : {input.samples, input.validation_samples})
    classes.cut_pieces({samples % input.batch_size}, cuts);
  return classes.cut_pieces({input.batch_size}, cuts).front();
}

/// Separates ranks of `model` whose tensors of a microbatch have other numbers of rows or columns.
void cut_activations(AxisClasses& classes, const Plan& plan, const std::set<Size>& samples) {
  const PlanInput& input = plan.input;
  const AxisSet axes = input.mesh.axes_named({"model"});
  const Size ways = input.mesh.size_of("context");
  const Size parts =
      input.numerics.reproducible ? input.numerics.grains : input.microbatches;  // of `samples`
  std::set<Size> extents;
  for (const StagePlan& stage : plan.stages)
    for (const Slot& slot : stage.slots) {
      if (slot.parameter >= 0) continue;
      const Placement along = placement_along("model", slot.placements, input.mesh);
      if (!along.is_shard()) continue;
      if (along.dim() > 0) {
        extents.insert(slot.shape[along.dim()] / along.unit());
        continue;
      }
      for (const Size of_rank : samples)
        for (const Size m : {Size{0}, parts - 1})  // with the most and the fewest rows
          for (const Size c : {Size{0}, ways - 1})
            extents.insert(balanced_split(of_rank, parts, m).count *
                           balanced_split(slot.positions(), ways, c).count);
    }
  const Size blocks = input.numerics.reproducible ? input.numerics.model_grains : 0;
  for (const Size extent : extents) {
    // Uneven pieces reach each rank at another time.
    if (input.model_overlap && extent % input.mesh.size_of("model") != 0) classes.separate(axes);
    classes.cut_pieces({extent}, {{.axes = axes, .blocks = blocks}});
  }
}

/// Returns classes of ranks with equal samples, extents of layers and sizes of parts of buckets.
/// With `parameters`, their parts also contain equally many elements of each parameter, and count
/// them in sums over ranks, or do not.
AxisClasses classes_of(const Plan& plan, bool parameters) {
  const PlanInput& input = plan.input;
  AxisClasses classes(input.mesh);
  classes.separate(input.mesh.axes_named({"pipeline", "context"}));
  cut_activations(classes, plan, cut_samples(classes, input));
  for (const StagePlan& stage : plan.stages) {
    const ParameterLayout& layout = stage.parameters;
    for (const UnitPlan& unit : layout.units) {
      const BucketPlan& bucket = layout.buckets[unit.bucket];
      classes.cut_range(bucket.cuts(), bucket.elements, unit.partial_gradients);
    }
    for (const BucketPlan& bucket : layout.buckets) {
      for (const Range& matrix : bucket.matrices)
        classes.cut_range(bucket.cuts(), bucket.elements, matrix);
      if (!bucket.matrices.empty() && input.muon_layout == MuonLayout::exchange)
        classes.separate(bucket.shares.axes);
    }
    for (const ParameterPlan& parameter : layout.parameters) {
      classes.cut_pieces(parameter.shape, parameter.cuts);
      if (parameters) cut_parameter(classes, plan, layout, parameter);
    }
  }
  if (!parameters) return classes;
  // The first of the ranks with equal elements writes them to a checkpoint and counts them.
  for (const StagePlan& stage : plan.stages)
    for (const BucketPlan& bucket : stage.parameters.buckets) classes.cut(bucket.replicas(), 1);
  for (const std::size_t axis :
       state_axes(input, input.mesh) - shard_axes(input.strategy, input.mesh))
    classes.cut({axis}, 1);
  return classes;
}

}  // namespace

RankGroups<LocalPart> group_parts(const Plan& plan, Size stage, const Slot& slot) {
  const MeshShape& mesh = plan.input.mesh;
  const ParameterLayout& layout = plan.stages[stage].parameters;
  AxisClasses classes(mesh);
  classes.separate(mesh.axes_named({"pipeline"}));
  classes.cut_pieces(slot.shape, slot.cuts);
  if (slot.held != Held::whole)
    cut_parameter(classes, plan, layout, layout.parameters[slot.parameter]);
  RankGroups<Size> of_stage = groups_of(classes);
  std::erase_if(of_stage.groups, [&](const auto& group) {
    return plan.stage_number(of_stage.first_rank(group)) != stage;
  });
  return joined(of_stage, [&](Size rank) {
    LocalPart part{piece(slot.shape, slot.cuts, mesh, rank).extent};
    part.kept = num_elements(part.shape);
    if (slot.held != Held::whole) {
      const ParameterPlan& parameter = layout.parameters[slot.parameter];
      const Range held = plan.state(rank).buckets[parameter.bucket].part(slot.held);
      part.kept = intersection({parameter.place.begin, part.kept}, held).count;
    }
    return part;
  });
}

RankGroups<std::vector<Size>> group_alike(const Plan& plan, bool with_norm) {
  const PlanInput& input = plan.input;
  const RankGroups<Size> all = groups_of(classes_of(plan, with_norm));
  // Along the other axes ranks differ in samples and parts of buckets only, which are compared.
  const AxisSet by_class = input.mesh.axes_named({"model", "pipeline", "expert"});
  return joined(all, [&](Size rank) {
    const BatchSamples samples(input, input.batch_size, rank);
    std::vector<Size> key = samples.changes();
    for (const BatchSamples::OfRank& of : samples.of_ranks()) key.push_back(of.samples);
    for (const std::size_t axis : by_class) key.push_back(all.ranks.class_along(axis, rank));
    key.insert(key.end(),
               {input.mesh.coordinate(rank, "context"), plan.batch_samples(rank).count,
                plan.data_samples(rank), plan.data_samples(rank, input.validation_samples)});
    const StatePlan state = plan.state(rank);
    key.push_back(state.gradient_rows);
    for (const Range& run : state.grains_of_experts)
      for (Size n = 1; n <= run.count; ++n) key.push_back(nodes_in({run.begin, n}));
    for (const BucketPlace& bucket : state.buckets)
      key.insert(key.end(),
                 {bucket.share.count, bucket.owned.count, bucket.nodes, bucket.share_rows});
    key.push_back(state.matrices);
    for (std::size_t b = 0; input.orthogonalizes && b < state.buckets.size(); ++b) {
      const MatricesPlan matrices = plan_matrices(plan, static_cast<Size>(b), rank);
      key.push_back(matrices.held.count);
      key.insert(key.end(), matrices.matrices.begin(), matrices.matrices.end());
    }
    for (const UnitPlan& unit : plan.stage(rank).parameters.units)
      key.push_back(state.owned_gradients(unit.bucket, unit.partial_gradients).count);
    Size counted = 0;
    if (with_norm)
      for (const Range& range : plan.unique_gradients(rank)) counted += range.count;
    key.push_back(counted);
    return key;
  });
}

LargestMemory largest_memory(const Plan& plan) {
  LargestMemory largest{0, plan.memory(0)};
  const auto alike = group_alike(plan);
  for (const auto& group : alike.groups) {
    const Size rank = alike.first_rank(group);
    const MemoryPlan memory = plan.memory(rank);
    if (memory.total() > largest.memory.total()) largest = {rank, memory};
  }
  return largest;
}

RankGroups<CheckpointBytes> group_checkpoint_bytes(const Plan& plan) {
  return joined(groups_of(classes_of(plan, true)),
                [&](Size rank) { return checkpoint_bytes(plan, rank); });
}

}  // namespace tessera
