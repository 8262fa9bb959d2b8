// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/predict/kernel_work.hpp>
#include <tessera/predict/step_bounds.hpp>

namespace tessera {
namespace {

/// Returns the bytes of parameters, gradients and moments on the first rank of a stage, which has
/// the largest shares.
Size most_state(const PlanInput& input, const StagePlan& stage) {
  const StatePlan state = plan_state(input, stage.parameters.buckets, 0);
  return (state.parameters() + state.gradients()) * size_of(input.state_type) +
         (input.moments * state.moments() - state.matrices) * size_of(input.moments_type()) +
         state.copies() * size_of(input.compute_type);
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
    const bool has_parameters = layers[l].uses_parameters();
    depends[l] = reads || has_parameters;
    if (has_parameters)
      shares[l] = reads || layers[l].inputs[0] == LayerSpec::data ? 1 : 0.5;
    else
      shares[l] = reads && !layers[l].kind->passes_gradient(layers[l]) ? 1 : 0;
  }
  return shares;
}

/// Returns true if two layers of the model do the same work.
bool do_the_same(const Plan& outline, std::size_t a, std::size_t b) {
  const LayerSpec &one = outline.input.model.layers[a], &other = outline.input.model.layers[b];
  return one.kind == other.kind && one.sizes == other.sizes && one.settings == other.settings &&
         (one.inputs[0] == LayerSpec::data) == (other.inputs[0] == LayerSpec::data) &&
         outline.placements[a] == outline.placements[b];
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

const std::vector<PassCount>& StepBounds::passes(const Plan& outline, double bytes_per_second) {
  const PlanInput& input = outline.input;
  // The last rank has the smallest extents. It and the last microbatch have the fewest samples.
  const Size last = input.mesh.num_ranks() - 1;
  const Size samples = BatchSamples(input, input.batch_size, last)
                           .in(input.microbatches - 1, batch_axes(input.mesh));
  const Size ways = input.mesh.size_of("context"), experts = input.mesh.size_of("expert");
  const auto [found, is_new] = passes_.try_emplace(
      fmt::format("{} {} {} {} {} {} {}", input.mesh.size_of("model"), ways, experts, samples,
                  name_of(input.context_attention), input.sequence_parallel, bytes_per_second));
  std::vector<PassCount>& all = found->second;
  if (!is_new) return all;
  const double rate = product_rate(machine_, input);
  const auto seconds = [&](const LayerSpec& layer, PassKind pass) {
    const Size rows = layer.experts() > 0 ? experts * samples : samples;
    const Work work = layer_work(layer, rows, input, pass, 1, machine_.software.attention);
    return work.is_empty() ? 0 : cost_of_kernel(machine_, work, rate, bytes_per_second).seconds;
  };
  const auto least_of_ranks = [&](std::size_t l) {
    constexpr double never = std::numeric_limits<double>::infinity();
    PassCount least{never, never};
    for (Size c = 0; c < ways; ++c) {
      const LayerSpec layer =
          local_layer(input, input.model.layers[l], outline.placements[l],
                      last - input.mesh.rank_at("context", c), input.mesh.all_axes());
      least.forward = std::min(least.forward, seconds(layer, PassKind::forward));
      least.backward = std::min(least.backward, seconds(layer, PassKind::backward));
    }
    return least;
  };
  const std::vector<double> shares = backward_shares(input.model.layers);
  std::vector<PassCount> least;
  for (std::size_t l = 0; l < shares.size(); ++l) {
    std::size_t first = 0;
    while (!do_the_same(outline, first, l)) ++first;
    least.push_back(first < l ? least[first] : least_of_ranks(l));
    all.push_back({least[l].forward, shares[l] > 0 ? shares[l] * least[l].backward : 0});
  }
  return all;
}

std::vector<StepBound> StepBounds::of(PlanInput input, const std::vector<Size>& microbatches) {
  input.microbatches = 1;  // the stages do not depend on it
  Plan outline = outline_plan(std::move(input));
  std::vector<Size> memory;  // by stage
  for (const StagePlan& stage : outline.stages) memory.push_back(most_state(outline.input, stage));
  // Rank 0 needs at least this much, so that it does not fit into a smaller cache.
  const double bytes_per_second = machine_.highest_rate(memory.front());
  std::vector<double> updates;  // by stage, of the last rank, which has the smallest shares
  for (const StagePlan& stage : outline.stages) {
    const StatePlan state =
        plan_state(outline.input, stage.parameters.buckets, outline.input.mesh.num_ranks() - 1);
    updates.push_back(machine_.kernel_seconds +
                      static_cast<double>(update_bytes(outline.input, state)) / bytes_per_second);
  }
  std::vector<StepBound> bounds;
  for (const Size number : microbatches) {
    outline.input.microbatches = number;
    set_grains(outline.input);
    const std::vector<PassCount>& layers = passes(outline, bytes_per_second);
    std::vector<std::vector<PassCount>> chunks;
    for (const StagePlan& stage : outline.stages) {
      chunks.emplace_back();
      for (const Range& chunk : stage.chunks) chunks.back().push_back(sum_of(layers, chunk));
    }
    bounds.push_back({least_seconds(chunks, updates, outline.input),
                      *std::max_element(memory.begin(), memory.end())});
  }
  return bounds;
}

}  // namespace tessera
