// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include <tessera/base/error.hpp>
#include <tessera/nn/flops.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/replica_check.hpp>
#include <tessera/plan/schedule.hpp>

namespace tessera {
namespace {

void check(const PlanInput& input) {
  const auto positive = [](std::string_view key, Size value) {
    if (value < 1) throw ConfigError(key, std::to_string(value), "must be positive");
  };
  positive("training.batch_size", input.global_batch);
  positive("training.microbatches", input.microbatches);
  positive("distributed.bucket_bytes", input.bucket_bytes);
  positive("data.samples", input.samples);
  if (input.model.layers.empty())
    throw ConfigError("model.widths", "[]", "must give at least one layer");
}

/// Buckets serve replicated gradients; what is sharded is reduced unit by unit.
std::vector<Bucket> buckets_of(const PlanInput& input, const Layouts& layouts) {
  if (sharding_on(input.strategy, input.mesh).moments) return one_bucket_per_layer(input.model);
  return make_buckets(layouts.local_model(input.model, 0), size_of(input.dtype),
                      input.bucket_bytes);
}

/// A rank's coordinate among the ranks along these axes, row-major in the order of the mesh.
Size coordinate_along(const std::vector<std::string>& axes, const MeshShape& mesh, Size rank) {
  Size coordinate = 0;
  for (const std::size_t a : mesh.effective(axes))
    coordinate = coordinate * mesh.axes()[a].size + mesh.coordinate(rank, a);
  return coordinate;
}

Size model_coordinate(const MeshShape& mesh, Size rank) {
  return coordinate_along({"model"}, mesh, rank);
}

}  // namespace

Range batch_share(const MeshShape& mesh, Size batch, Size rank) {
  const std::vector<Size> at = mesh.coordinates(rank);
  Range rows{0, batch};
  for (const std::string& name : batch_axes(mesh)) {
    const Range part = balanced_split(rows.count, mesh.size_of(name), at[*mesh.find(name)]);
    rows = {rows.begin + part.begin, part.count};
  }
  return rows;
}

Range Plan::rows(Size rank) const { return batch_share(input.mesh, input.global_batch, rank); }

Range Plan::microbatch_rows(Size rank, Size microbatch) const {
  return balanced_split(rows(rank).count, input.microbatches, microbatch);
}

Size Plan::steps_per_epoch() const {
  return (input.samples + input.global_batch - 1) / input.global_batch;
}

Size Plan::data_rows(Size rank) const {
  const Size full_batches = input.samples / input.global_batch;
  const Size remainder = input.samples % input.global_batch;
  return full_batches * rows(rank).count + batch_share(input.mesh, remainder, rank).count;
}

ModelSpec Plan::local_model(Size rank) const {
  return layouts.local_model(input.model, model_coordinate(input.mesh, rank));
}

StatePlan Plan::state(Size rank) const {
  const std::vector<std::string> axes = shard_axes(input.strategy, input.mesh);
  return plan_state(input, local_model(rank), input.mesh.group_size(axes),
                    coordinate_along(axes, input.mesh, rank));
}

LocalRows Plan::local_rows(Size rank) const {
  return {microbatch_rows(rank, 0).count, input.mesh.size_of("model"),
          model_coordinate(input.mesh, rank)};
}

std::vector<Range> Plan::unique_gradients(Size rank) const {
  std::vector<SplitAlongModel> split;
  for (Size l = 0; l < layouts.size(); ++l)
    split.push_back({layouts[l].kernel.is_shard(), layouts[l].bias().is_shard()});
  return tessera::unique_gradients(state(rank), local_model(rank), split,
                                   model_coordinate(input.mesh, rank));
}

MemoryPlan Plan::memory(Size rank) const {
  const auto bytes = [&](Size elements) { return allocated_bytes(elements, size_of(input.dtype)); };
  const ModelSpec local = local_model(rank);
  const StatePlan kept = state(rank);
  const LocalRows at_most = local_rows(rank);
  const ActivationElements activations = activation_elements(layouts, local, input.model, at_most);
  const MatmulScratch scratch = matmul_scratch(input.precision, local, at_most.microbatch);
  const Size rows_of_data = data_rows(rank);
  MemoryPlan memory;
  memory.parameters = bytes(kept.parameters());
  memory.gradients = bytes(kept.gradients());
  memory.moments = bytes(input.moments * kept.moments());
  memory.gathered_units = bytes(kept.gathered);
  memory.unit_gradients = bytes(kept.unit_gradients) + bytes(kept.incoming);
  memory.activations = bytes(activations.total());
  memory.redistributions = bytes(activations.redistributed) + bytes(activations.packed);
  memory.scratch = bytes(scratch.left) + bytes(scratch.right);
  memory.sums = allocated_bytes(plan_sums(*this).total(), size_of(DType::float64));
  if (input.check_replicas_every > 0) memory.sums += checksum_bytes(*this);
  memory.data = bytes(rows_of_data * input.model.input_width()) +
                bytes(rows_of_data * input.model.output_width());
  return memory;
}

std::vector<CollectivePlan> Plan::collectives(Size rank) const {
  return plan_collectives(*this, rank);
}

SumsPlan plan_sums(const Plan& plan) {
  SumsPlan sums;
  sums.losses = plan.steps_per_epoch() * plan.input.microbatches;
  // A kernel and a bias of each layer, if their parts do not lie one behind the other.
  if (plan.input.clips_by_norm) sums.norms = 2 * plan.layouts.size();
  if (plan.input.check_finite) sums.finite = 1;
  return sums;
}

Plan make_plan(const PlanInput& input) {
  check(input);
  Plan plan{input, Layouts(input), {}, {}, {}, {}};
  plan.tensors = place_tensors(input, plan.layouts);
  plan.buckets = buckets_of(input, plan.layouts);
  plan.actions = make_schedule(input, plan.layouts, plan.buckets);
  plan.flops.forward = forward_flops(input.model, input.global_batch);
  plan.flops.backward = step_flops(input.model, input.global_batch) - plan.flops.forward;
  return plan;
}

}  // namespace tessera
