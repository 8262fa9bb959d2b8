// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <tessera/nn/layers/layer_row.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/plan/layout/layouts.hpp>
#include <tessera/plan/layout/units.hpp>
#include <tessera/plan/memory.hpp>
#include <tessera/plan/pipeline/stages.hpp>
#include <tessera/predict/step_bounds.hpp>
#include <tessera/predict/work.hpp>

namespace tessera {
namespace {

/// The memory of the rank of a stage with the largest share of its state, and the updates of the
/// rank with the smallest share.
struct StageState {
  Size memory_bytes = 0;
  Size updates = 0;  ///< elements
};

StageState state_of(const PlanInput& input, const std::vector<Layout>& layouts,
                    const std::vector<Range>& chunks) {
  const std::vector<BucketPlan> buckets = lay_out_parameters(input, layouts, chunks).buckets;
  const StatePlan largest = plan_state(input, buckets, 0);
  const StatePlan smallest = plan_state(input, buckets, input.mesh.num_ranks() - 1);
  return {(largest.parameters() + largest.gradients() + input.moments * largest.moments()) *
                  size_of(input.state_type) +
              largest.copies() * size_of(input.compute_type),
          smallest.moments()};
}

/// Returns by layer the part of its backward pass that a step has at least. Gradients of inputs
/// that depend on no parameters are left out.
std::vector<double> backward_shares(const std::vector<LayerSpec>& layers) {
  std::vector<bool> depends(layers.size());  // on parameters
  std::vector<double> shares(layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const bool reads = std::any_of(layers[l].inputs.begin(), layers[l].inputs.end(), [&](Size i) {
      return i != LayerSpec::data && depends[static_cast<std::size_t>(i)];
    });
    const bool has_parameters = !layers[l].parameters.empty();
    depends[l] = reads || has_parameters;
    if (has_parameters)
      shares[l] = reads || layers[l].inputs[0] == LayerSpec::data ? 1 : 0.5;
    else
      shares[l] = reads && !row_of(layers[l]).passes_gradient(layers[l]) ? 1 : 0;
  }
  return shares;
}

/// Seconds of one microbatch in a chunk of layers: forward, and backward for the stage before.
PassCount sum_of(const std::vector<PassCount>& layers, Range chunk) {
  PassCount sum;
  for (Size l = chunk.begin; l < chunk.end(); ++l) {
    sum.forward += layers[static_cast<std::size_t>(l)].forward;
    sum.backward += layers[static_cast<std::size_t>(l)].backward;
  }
  return sum;
}

/// Returns the least seconds of a step whose stages take these times. Between two ends of a step, a
/// rank of the first stage sends a microbatch down to stage s, which then has all its passes of the
/// step before it, and waits for a gradient from there.
double least_seconds(const std::vector<std::vector<PassCount>>& chunks,
                     const std::vector<double>& updates, const PlanInput& input) {
  // Only half of a backward pass may be on the way if gradients of weights come later.
  const double on_the_way = input.splits_backward() ? 0.5 : 1;
  const auto times = static_cast<double>(input.microbatches);
  double longest = 0, way = 0;
  for (std::size_t s = 0; s < chunks.size(); ++s) {
    PassCount all;
    for (const PassCount& chunk : chunks[s])
      all.forward += chunk.forward, all.backward += chunk.backward;
    longest = std::max({longest, times * all.total() + updates[s],
                        way + times * (all.forward + on_the_way * all.backward) + updates[0]});
    way += chunks[s].front().forward + on_the_way * chunks[s].front().backward;
  }
  return longest;
}

}  // namespace

const std::vector<PassCount>& StepBounds::passes(const PlanInput& input,
                                                 const std::vector<Layout>& layouts,
                                                 double bytes_per_second) {
  const MeshShape& mesh = input.mesh;
  // The last rank and the last microbatch have the fewest samples.
  const Size samples =
      microbatch_samples(input, mesh.num_ranks() - 1, input.microbatches - 1).count;
  AlongRank at{.model_ranks = mesh.size_of("model"),
               .context_ranks = mesh.size_of("context"),
               .expert_ranks = mesh.size_of("expert")};
  at.model = at.model_ranks - 1;
  at.expert = at.expert_ranks - 1;
  const auto [found, is_new] = passes_.try_emplace(fmt::format(
      "{} {} {} {} {} {} {}", at.model_ranks, at.context_ranks, at.expert_ranks, samples,
      name_of(input.context_attention), input.sequence_parallel, bytes_per_second));
  std::vector<PassCount>& all = found->second;
  if (!is_new) return all;
  constexpr double never = std::numeric_limits<double>::infinity();
  all.assign(layouts.size(), {never, never});
  const double rate = product_rate(machine_, input);
  const std::vector<double> shares = backward_shares(input.model.layers);
  for (at.context = 0; at.context < at.context_ranks; ++at.context) {
    const std::vector<LayerSpec> layers = local_layers(input, layouts, at);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const Size rows = layers[l].experts() > 0 ? at.expert_ranks * samples : samples;
      const auto seconds = [&](PassKind pass) {
        const Work work = layer_work(layers[l], rows, input, pass);
        return work.is_empty() ? 0 : cost_of_kernel(machine_, work, rate, bytes_per_second).seconds;
      };
      all[l].forward = std::min(all[l].forward, seconds(PassKind::forward));
      all[l].backward =
          std::min(all[l].backward, shares[l] > 0 ? shares[l] * seconds(PassKind::backward) : 0);
    }
  }
  return all;
}

std::vector<StepBound> StepBounds::of(PlanInput input, const std::vector<Size>& microbatches) {
  input.microbatches = 1;  // the stages do not depend on it
  add_shared_rows(input);
  for (LayerSpec& layer : input.model.layers)
    layer.tiling = tiling_of(input.device, input.numerics.reproducible);
  const std::vector<Layout> layouts = choose_layouts(input);
  const std::vector<std::vector<Range>> stages = split_into_stages(input);
  Size memory = 0, first_memory = 0;
  std::vector<Size> elements;
  for (const std::vector<Range>& chunks : stages) {
    const StageState state = state_of(input, layouts, chunks);
    if (elements.empty()) first_memory = state.memory_bytes;
    memory = std::max(memory, state.memory_bytes);
    elements.push_back(state.updates);
  }
  // Rank 0 needs at least this much, so that it does not fit into a smaller cache.
  const double bytes_per_second = machine_.highest_rate(first_memory);
  std::vector<double> updates;
  for (const Size count : elements)
    updates.push_back(machine_.kernel_seconds +
                      static_cast<double>(update_bytes(input, count)) / bytes_per_second);
  std::vector<StepBound> bounds;
  for (const Size number : microbatches) {
    input.microbatches = number;
    set_grains(input);
    const std::vector<PassCount>& layers = passes(input, layouts, bytes_per_second);
    std::vector<std::vector<PassCount>> chunks;
    for (const std::vector<Range>& stage : stages) {
      chunks.emplace_back();
      for (const Range& chunk : stage) chunks.back().push_back(sum_of(layers, chunk));
    }
    bounds.push_back({least_seconds(chunks, updates, input), memory});
  }
  return bounds;
}

}  // namespace tessera
