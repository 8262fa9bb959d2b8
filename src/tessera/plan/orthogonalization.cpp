// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/plan/orthogonalization.hpp>

namespace tessera {

MatricesPlan plan_matrices(const Plan& plan, Size bucket, Size rank) {
  const MeshShape& mesh = plan.input.mesh;
  const ParameterLayout& layout = plan.stage(rank).parameters;
  const BucketPlan& of = layout.buckets[bucket];
  const Cut& shares = of.shares;
  const Size ranks = mesh.group_size(shares.axes), own = mesh.coordinate(rank, shares.axes);
  const Size first = layout.units[of.units.begin].parameters.begin;
  const auto share = [&](Size r) { return balanced_split(of.elements, ranks, r); };
  std::vector<Range> held(static_cast<std::size_t>(ranks), Range{0, of.elements});
  if (plan.input.muon_layout == MuonLayout::owner)
    for (Size r = 0; r < ranks; ++r) held[r] = share(r);
  const bool exchanges = plan.input.muon_layout == MuonLayout::exchange && ranks > 1;
  if (exchanges) {
    held.assign(static_cast<std::size_t>(ranks), {});
    for (std::size_t p = 0; p < of.owners.size(); ++p) {
      const Range place = layout.parameters[first + static_cast<Size>(p)].place;
      Range& of_owner = held[of.owners[p]];
      of_owner = {of_owner.count == 0 ? place.begin : of_owner.begin, of_owner.count + place.count};
    }
  }
  MatricesPlan matrices{.held = held[own],
                        .pieces = of.splits_matrices ? mesh.size_of("model") : 1};
  for (Size r = 0; exchanges && r < ranks; ++r) {
    matrices.sent.push_back(intersection(share(own), held[r]).count);
    matrices.received.push_back(intersection(share(r), held[own]).count);
  }
  for (Size p = first; p < layout.units[of.units.end() - 1].parameters.end(); ++p) {
    const ParameterPlan& parameter = layout.parameters[p];
    const Size begin = parameter.place.begin;
    if (parameter.is_matrix && begin >= matrices.held.begin && begin < matrices.held.end())
      matrices.matrices.push_back(p);
  }
  return matrices;
}

OrthogonalizationScratch orthogonalization_scratch(const Plan& plan, Size rank) {
  OrthogonalizationScratch scratch;
  const ParameterLayout& layout = plan.stage(rank).parameters;
  const StatePlan state = plan.state(rank);
  OrthogonalizationScratch::Place end;
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
    if (layout.buckets[b].begins_orthogonalization()) end = {};
    scratch.places.push_back(end);
    if (layout.buckets[b].matrices.empty()) continue;
    const MatricesPlan matrices = plan_matrices(plan, static_cast<Size>(b), rank);
    end.held += matrices.pieces * matrices.held.count;
    if (!matrices.sent.empty()) end.own += state.buckets[b].share.count;
    scratch.held = std::max(scratch.held, end.held);
    scratch.own = std::max(scratch.own, end.own);
    for (const Size p : matrices.matrices) {
      const Shape& shape = layout.parameters[p].shape;
      scratch.products.raise_to(shape[0], shape[1], plan.input.numerics.reproducible);
    }
  }
  return scratch;
}

double orthogonalization_flops(const Plan& plan) {
  const MeshShape& mesh = plan.input.mesh;
  const Size ranks = mesh.num_ranks() / mesh.size_of("pipeline");
  double flops = 0;
  for (const StagePlan& stage : plan.stages)
    for (const ParameterPlan& parameter : stage.parameters.parameters) {
      if (!parameter.is_matrix) continue;
      const AxisSet shares = stage.parameters.buckets[parameter.bucket].shares.axes;
      const bool on_all = plan.input.muon_layout == MuonLayout::gather;
      const Size times = on_all ? ranks : ranks / mesh.group_size(shares);
      flops += newton_schulz_flops(parameter.shape) * static_cast<double>(times);
    }
  return flops;
}

}  // namespace tessera
