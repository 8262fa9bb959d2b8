// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include <tessera/base/error.hpp>
#include <tessera/nn/flops.hpp>
#include <tessera/plan/plan.hpp>
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

/// The traffic of gradients and losses. An axis of size 1 issues no call.
std::vector<CollectivePlan> list_collectives(const Plan& plan) {
  std::vector<CollectivePlan> list;
  const PlanInput& input = plan.input;
  for (const std::string& axis : batch_axes(input.mesh)) {
    if (input.mesh.size_of(axis) == 1) continue;
    list.push_back({axis, Operation::all_reduce, static_cast<Size>(plan.buckets.size()),
                    input.model.num_parameters() * size_of(input.dtype), Cadence::step,
                    "gradients"});
    list.push_back({axis, Operation::all_reduce, 1,
                    plan.steps_per_epoch() * input.microbatches * size_of(DType::float64),
                    Cadence::epoch, "loss sums"});
  }
  return list;
}

}  // namespace

std::string_view name_of(Cadence cadence) { return cadence == Cadence::step ? "step" : "epoch"; }

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

MemoryPlan Plan::memory(Size rank) const {
  return plan_memory(input, microbatch_rows(rank, 0).count, data_rows(rank), steps_per_epoch());
}

Plan make_plan(const PlanInput& input) {
  check(input);
  Plan plan;
  plan.input = input;
  plan.tensors = place_tensors(input);
  plan.buckets = make_buckets(input.model, size_of(input.dtype), input.bucket_bytes);
  plan.collectives = list_collectives(plan);
  plan.actions = make_schedule(input, plan.buckets);
  plan.flops.forward = forward_flops(input.model, input.global_batch);
  plan.flops.backward = step_flops(input.model, input.global_batch) - plan.flops.forward;
  return plan;
}

}  // namespace tessera
