// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/plan/memory.hpp>
#include <tessera/plan/orthogonalization.hpp>
#include <tessera/plan/pass/pass.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/replica_check.hpp>

namespace tessera {
namespace {

void raise(Size& most, Size elements) { most = std::max(most, elements); }
void raise(MatmulScratch& most, const MatmulScratch& scratch) {
  raise(most.left, scratch.left);
  raise(most.right, scratch.right);
  raise(most.result, scratch.result);
}

/// Returns the elements of all that backward of a layer with parameters may read in the rows of a
/// block of positions.
Size gathered_elements(const PlanInput& input, const LayerSpec& layer, Size samples) {
  if (layer.parameters.empty() || layer.share.blocks <= 1) return 0;
  Size columns = input.model.input_width + 2 * layer.out() + layer.kind->saved_columns(layer);
  for (std::size_t i = 0; i < max_layer_inputs; ++i)
    if (!layer.kind->expression.inputs[i].indices.empty()) columns += layer.columns_of(i);
  Size positions = 0;
  const Range own = layer.share.blocks_of(layer.share.part);
  for (Size b = own.begin; b < own.end(); ++b)
    raise(positions, layer.share.run_of({b, 1}, 0).count + layer.share.run_of({b, 1}, 1).count);
  return samples * positions * columns;
}

}  // namespace

ScratchPlan plan_scratch(const Plan& plan, Size rank) {
  const PlanInput& input = plan.input;
  const bool rounds = input.precision != MatmulPrecision::strict && !input.rounds_natively();
  // The layers with the rank's part of the positions, and otherwise with the largest extents and
  // the most samples of any rank: those of the first one.
  const MeshShape& mesh = input.mesh;
  const std::vector<LayerSpec> layers =
      plan.local_layers(mesh.rank_at("context", mesh.coordinate(rank, "context")));
  const BatchSamples most_samples(input, input.batch_size, 0);
  ScratchPlan scratch;
  for (const Range& chunk : plan.stage(rank).chunks)
    for (Size l = chunk.begin; l < chunk.end(); ++l) {
      const LayerSpec &layer = layers[l], &whole = input.model.layers[l];
      const Size samples = most_samples.in(0, sample_axes(mesh, plan.placements[l]));
      raise(scratch.layers, layer.kind->scratch(layer, samples));
      if (input.numerics.reproducible) {
        const bool has_stacks = input.sums_positions_first() && layer.experts() > 0;
        const Size rows = gradient_rows(input, whole, plan.placements[l], 0) *
                          (has_stacks ? mesh.size_of("expert") : 1);
        raise(scratch.gradient_nodes, ((rows == 1 ? 0 : rows) + tree_levels(layer.share.blocks)) *
                                          gradient_elements(plan.stage(rank).parameters, whole, l));
        raise(scratch.gathered_rows, gathered_elements(input, layer, samples));
        const LayerBlocks sums = layer_blocks(input, whole, plan.placements[l], rank);
        const Size blocks = std::max(sums.in.own.count, sums.out.own.count);
        const std::vector<GemmShape> products = products_of(layer, samples);
        if (whole.kind->sums_in_blocks && !whole.groups.name.empty() && !products.empty() &&
            blocks > 1)
          raise(scratch.products.nodes,
                (tree_levels(blocks) + 1) *
                    std::max(layer.positions_of(0) * layer.in(), layer.positions() * layer.out()));
        for (const GemmShape& product : products)
          raise(scratch.products, fixed_order_scratch(product.m, product.n, product.k,
                                                      rounds || input.has_copies(), blocks));
      } else if (rounds || input.emulates_products()) {
        for (const GemmShape& product : products_of(layer, samples)) {
          const bool is_vector = product.m <= 1 || product.n <= 1 || product.k <= 1;
          if (rounds && is_vector) continue;
          raise(scratch.products,
                {product.m * product.k, product.k * product.n, rounds ? 0 : product.m * product.n});
        }
      }
    }
  return scratch;
}

MemoryPlan Plan::memory(Size rank) const {
  const Size state_bytes = size_of(input.state_type), compute_bytes = size_of(input.compute_type);
  const auto in_state_type = [&](Size elements) { return allocated_bytes(elements, state_bytes); };
  const auto in_compute_type = [&](Size elements) {
    return allocated_bytes(elements, compute_bytes);
  };
  const StatePlan state = this->state(rank);
  const ScratchPlan scratch = plan_scratch(*this, rank);
  MemoryPlan memory;
  memory.parameters = in_state_type(state.parameters());
  memory.gradients = in_state_type(state.rows_of_gradients() * state.gradients()) +
                     in_state_type(state.second_use);
  memory.moments = allocated_bytes(input.moments * state.moments() - state.matrices,
                                   size_of(input.moments_type()));
  memory.copies = in_compute_type(state.copies());
  memory.gathered_units = in_compute_type(state.gathered);
  memory.unit_gradients = in_state_type(state.gradient_rows * state.bucket_gradients) +
                          in_state_type(state.incoming) + in_state_type(state.scatter_scratch) +
                          in_state_type(state.share_scratch);
  memory.activations = allocated_bytes(stage(rank).frame_bytes, 1);
  for (const Size elements :
       {scratch.products.left, scratch.products.right, scratch.products.result,
        scratch.products.nodes, scratch.layers, scratch.gradient_nodes, scratch.gathered_rows})
    memory.scratch += in_state_type(elements);
  const OrthogonalizationScratch matrices = orthogonalization_scratch(*this, rank);
  const NewtonSchulzScratch& steps = matrices.products;
  for (const Size elements : {matrices.held, matrices.own, steps.matrix, steps.matrix, steps.gram,
                              steps.gram, steps.products.right, steps.products.result})
    memory.scratch += in_state_type(elements);
  if (steps.matrix > 0) memory.scratch += size_of(DType::float64);  // the norm
  memory.sums = allocated_bytes(plan_sums(input, stage(rank)).total(), size_of(DType::float64));
  if (input.check_replicas_every > 0) memory.sums += checksum_bytes(*this, rank);
  const ModelSpec& model = input.model;
  if (input.hashes_steps) memory.sums += allocated_bytes(num_hashes(model), size_of(DType::int64));
  const auto rows = [&](Size samples, Size x_positions, Size y_positions) {
    return in_state_type(samples * x_positions * model.input_width) +
           in_state_type(samples * y_positions * model.target_width());
  };
  const auto data = [&](Size samples) {
    return rows(samples, model.input_positions, model.output_positions());
  };
  // If samples are shuffled, every rank holds the whole data set and copies its samples of a batch
  // to buffers. With an axis `context` it copies its positions of them. Training samples are made
  // before these buffers are allocated, so their scratch does not add to the peak. Validation
  // samples are made afterwards.
  const Size ways = input.mesh.size_of("context");
  const Size positions = input.context_share(model.input_positions, rank).own_count();
  const Size own_samples = batch_samples(rank).count;
  const Size batch = ways > 1         ? rows(own_samples, positions, positions)
                     : input.shuffles ? data(own_samples)
                                      : 0;
  const Size scratch_bytes = allocated_bytes(input.data_scratch_bytes, 1);
  memory.data =
      data(input.shuffles ? input.samples : data_samples(rank)) +
      (input.validation_samples > 0 ? batch + data(data_samples(rank, input.validation_samples)) +
                                          std::max(scratch_bytes, ways > 1 ? batch : 0)
                                    : std::max(batch, scratch_bytes));
  return memory;
}

Size allocated_bytes(Size elements, Size element_bytes) {
  constexpr Size unit = 8;
  return (elements * element_bytes + unit - 1) / unit * unit;
}

}  // namespace tessera
