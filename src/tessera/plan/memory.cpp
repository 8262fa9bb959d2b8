// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/nn/layers/layer_row.hpp>
#include <tessera/plan/memory.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/replica_check.hpp>

namespace tessera {

Size layer_scratch(const Plan& plan, Size rank) {
  const std::vector<LayerSpec> layers = plan.local_layers(plan.first_rank(plan.stage_number(rank)));
  Size most = 0;
  for (const Range& chunk : plan.stage(rank).chunks)
    for (Size l = chunk.begin; l < chunk.end(); ++l)
      most = std::max(most, row_of(layers[l]).scratch(layers[l]));
  return most;
}

MatmulScratch matmul_scratch(const Plan& plan, Size rank) {
  MatmulScratch scratch;
  const bool rounds =
      plan.input.precision != MatmulPrecision::strict && !plan.input.rounds_natively;
  if (!rounds && !plan.input.emulates_products) return scratch;
  // The first rank of a stage has the most rows and the largest layers.
  const Size rows = plan.microbatch_rows(0, 0).count;
  const std::vector<LayerSpec> layers = plan.local_layers(plan.first_rank(plan.stage_number(rank)));
  for (const Range& chunk : plan.stage(rank).chunks)
    for (Size l = chunk.begin; l < chunk.end(); ++l)
      for (const GemmShape& product : products_of(layers[l], rows)) {
        const bool is_vector = product.m <= 1 || product.n <= 1 || product.k <= 1;
        if (rounds && is_vector) continue;
        scratch.left = std::max(scratch.left, product.m * product.k);
        scratch.right = std::max(scratch.right, product.k * product.n);
        if (!rounds) scratch.result = std::max(scratch.result, product.m * product.n);
      }
  return scratch;
}

MemoryPlan plan_memory(const Plan& plan, Size rank) {
  const PlanInput& input = plan.input;
  const StagePlan& stage = plan.stage(rank);
  const Size state_bytes = size_of(input.state_type), compute_bytes = size_of(input.compute_type);
  const auto state = [&](Size elements) { return allocated_bytes(elements, state_bytes); };
  const auto compute = [&](Size elements) { return allocated_bytes(elements, compute_bytes); };
  const StatePlan kept = plan.state(rank);
  const MatmulScratch scratch = matmul_scratch(plan, rank);
  MemoryPlan memory;
  memory.parameters = state(kept.parameters());
  memory.gradients = state(kept.gradients());
  memory.moments = state(input.moments * kept.moments());
  memory.copies = compute(kept.copies());
  memory.gathered_units = compute(kept.gathered);
  memory.unit_gradients =
      state(kept.bucket_gradients) + state(kept.incoming) + state(kept.arriving);
  memory.activations = allocated_bytes(stage.frame_bytes, 1);
  memory.scratch = state(scratch.left) + state(scratch.right) + state(scratch.result) +
                   state(layer_scratch(plan, rank));
  memory.sums = allocated_bytes(plan_sums(input, stage).total(), size_of(DType::float64));
  if (input.check_replicas_every > 0) memory.sums += checksum_bytes(plan, rank);
  const ModelSpec& model = input.model;
  const auto data = [&](Size samples) {
    return state(samples * model.input_positions * model.input_width) +
           state(samples * model.output_positions() * model.target_width());
  };
  // A shuffled batch is copied from the data set, which every rank then holds whole. Training
  // samples are made before the batch buffers exist, validation samples after.
  const Size batch = data(input.shuffles ? plan.rows(rank).count : 0);
  const Size scratch_bytes = allocated_bytes(input.data_scratch_bytes, 1);
  memory.data = data(input.shuffles ? input.samples : plan.data_rows(rank)) +
                (input.validation_samples > 0
                     ? batch + data(plan.data_rows(rank, input.validation_samples)) + scratch_bytes
                     : std::max(batch, scratch_bytes));
  return memory;
}

Size allocated_bytes(Size elements, Size element_bytes) {
  constexpr Size unit = 8;
  return (elements * element_bytes + unit - 1) / unit * unit;
}

}  // namespace tessera
