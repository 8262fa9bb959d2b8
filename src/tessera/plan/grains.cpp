// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/plan/layout/claims.hpp>

namespace tessera {
namespace {

/// Returns true if the rules or a spec let `model` split dimension `d` of a parameter, on any mesh.
bool may_split(const PlanInput& input, const std::string& path, const ParameterSpec& parameter,
               std::size_t d) {
  const auto given = input.parameter_specs.find(path);
  const PartitionSpec spec = given != input.parameter_specs.end()
                                 ? given->second
                                 : partition_spec_for_names(parameter.logical_axes, input.rules,
                                                            MeshShape({{"model", 2}}));
  return d < spec.dims.size() && std::count(spec.dims[d].begin(), spec.dims[d].end(), "model") > 0;
}

/// A dimension of a whole layer. Without blocks n is 0.
struct Dimension {
  Size n = 0, blocks = 1;
};
Dimension whole_blocks(const PlanInput& input, const LayerSpec& layer, std::size_t d) {
  if (!layer.groups.name.empty() && layer.parameters.empty()) {
    const Expression& expression = layer.kind->expression;
    const std::string_view indices = d == 0 ? expression.inputs[0].indices : expression.output;
    const char column = indices[indices.find(',') + 1];
    const Size groups = dimension_of(column).empty() ? 1 : layer.total(column);
    return {groups, nested_blocks(groups, input.numerics.model_grains)};
  }
  const LayerSpec& owner = layer.tied_to < 0 ? layer : input.model.layers[layer.tied_to];
  if (owner.parameters.empty() || owner.parameters[0].shape.size() != 2) return {};
  const ParameterSpec& kernel = owner.parameters[0];
  const std::size_t dimension = layer.tied_to < 0 ? d : 1 - d;  // products with the transpose
  if (!may_split(input, path_of(owner, kernel), kernel, dimension)) return {};
  const Size n = kernel.shape[dimension];
  return {n, nested_blocks(n, input.numerics.model_grains)};
}

/// Checks that the ranks of `model` get whole blocks of what they split.
void check_model_axis(const PlanInput& input, const std::vector<LayerPlacements>& layers) {
  const Size ranks = input.mesh.size_of("model");
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const LayerSpec& layer = input.model.layers[l];
    const Layout& along = layers[l].along("model");
    if (along.repeats > 1)
      throw ConfigError("numerics.reproducible", "true",
                        "needs at most as many ranks of the mesh axis model as {} = {}: the ranks "
                        "of a key sum its gradient",
                        layer.groups.name, layer.groups.value);
    if (!layer.kind->sums_in_blocks) continue;
    for (std::size_t d = 0; d < 2; ++d) {
      if (!(d == 0 ? along.inputs[0] : along.output).is_shard(1)) continue;
      if (const Size blocks = whole_blocks(input, layer, d).blocks; blocks % ranks != 0)
        throw ConfigError(
            "numerics.reproducible", "true",
            "splits the {} {} of {} into {}, which {} ranks of the mesh axis model do not divide; "
            "use at most {}, or a multiple of {} columns",
            d == 0 ? layer.in() : layer.out(), d == 0 ? "inputs" : "columns", layer.name,
            counted(blocks, "block"), ranks, counted(blocks, "rank"), input.numerics.model_grains);
    }
  }
}

/// Checks that the rows of a grain can be split along `model`.
void check_split_rows(const PlanInput& input, const std::vector<LayerPlacements>& layers) {
  const Numerics& numerics = input.numerics;
  const Size last = input.samples % input.batch_size;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (!layers[l].along("model").output.is_shard(0)) continue;
    const LayerSpec& layer = input.model.layers[l];
    if (input.batch_size % numerics.grains != 0 || last % numerics.grains != 0)
      throw ConfigError(
          "numerics.grains", std::to_string(numerics.grains),
          "must divide every batch with sequence_parallel; the batches have {} and {} "
          "samples",
          input.batch_size, last == 0 ? input.batch_size : last);
    for (const Size batch : {input.batch_size, last})
      if (const Size rows = batch / numerics.grains * layer.positions();
          rows % numerics.model_grains != 0)
        throw ConfigError("numerics.model_grains", std::to_string(numerics.model_grains),
                          "must divide the {} rows that a grain has in {} with sequence_parallel",
                          rows, layer.name);
  }
}

}  // namespace

Size batch_coordinate(const PlanInput& input, Size rank) {
  const MeshShape& mesh = input.mesh;
  const AxisSet replicas = replica_axes(input.strategy, mesh),
                shards = shard_axes(input.strategy, mesh);
  return mesh.coordinate(rank, replicas) * mesh.group_size(shards) + mesh.coordinate(rank, shards);
}

Size first_loss_sum(const PlanInput& input, Size rank) {
  return input.numerics.reproducible ? batch_coordinate(input, rank) * input.microbatches : 0;
}

Range batch_share(const PlanInput& input, Size batch, Size rank) {
  const MeshShape& mesh = input.mesh;
  if (input.numerics.reproducible)
    return items_of(
        batch, input.numerics.grains,
        balanced_split(input.numerics.grains, input.batch_ranks(), batch_coordinate(input, rank)));
  Range rows{0, batch};
  for (const std::size_t axis : batch_axes(mesh)) {
    const Range part =
        balanced_split(rows.count, mesh.axes()[axis].size, mesh.coordinate(rank, axis));
    rows = {rows.begin + part.begin, part.count};
  }
  return rows;
}

BatchSamples::BatchSamples(const PlanInput& input, Size batch, Size rank)
    : global_(batch),
      own_(batch_share(input, batch, rank).count),
      microbatches_(input.microbatches),
      batch_axes_(batch_axes(input.mesh)) {
  const MeshShape& mesh = input.mesh;
  const Size first = rank - mesh.rank_at("expert", mesh.coordinate(rank, "expert"));
  for (Size e = 0; e < mesh.size_of("expert"); ++e)
    of_ranks_.push_back(batch_share(input, batch, first + mesh.rank_at("expert", e)).count);
}

Size BatchSamples::in(Size microbatch, AxisSet axes) const {
  const auto part = [&](Size all) { return balanced_split(all, microbatches_, microbatch).count; };
  if (axes == batch_axes_) return part(own_);
  Size samples = 0;
  for (const Size of_rank : of_ranks_) samples += part(of_rank);
  return samples;
}

Size first_microbatch_samples(const PlanInput& input) {
  const Size parts = input.batch_ranks(), extra = input.batch_size % parts,
             base = input.batch_size / parts;
  if (!input.numerics.reproducible)
    // The first ranks have one sample more, and each splits its own samples into microbatches.
    return extra * balanced_split(base + 1, input.microbatches, 0).count +
           (parts - extra) * balanced_split(base, input.microbatches, 0).count;
  Size sum = 0;
  for (Size part = 0; part < parts; ++part)
    sum += balanced_split(input.batch_size, input.numerics.grains, part * input.microbatches).count;
  return sum;
}

LayerBlocks layer_blocks(const PlanInput& input, const LayerSpec& layer,
                         const LayerPlacements& placements, Size rank) {
  if (!input.numerics.reproducible) return {};
  const Size ranks = input.mesh.size_of("model"), part = input.mesh.coordinate(rank, "model");
  const Layout& along_model = placements.along("model");
  const auto of = [&](std::size_t d, Placement along) -> SumBlocks {
    const auto [n, blocks] = whole_blocks(input, layer, d);
    if (!along.is_shard(1)) return {n, blocks, {0, blocks}};
    return {n, blocks, {part * blocks / ranks, blocks / ranks}};
  };
  return {of(0, along_model.inputs[0]), of(1, along_model.output)};
}

Size softmax_blocks(const PlanInput& input) {
  if (!input.numerics.reproducible || input.loss != LossKind::cross_entropy) return 1;
  return nested_blocks(input.model.output_width(), input.numerics.model_grains);
}

Size row_blocks(const PlanInput& input, const LayerSpec& layer) {
  if (!input.numerics.reproducible || layer.parameters.empty() || layer.kind->sums_in_blocks)
    return 1;
  for (const Layout& along : model_choices(layer))
    for (const Placement& gradient : along.parameter_gradients)
      if (gradient.is_partial()) return input.numerics.model_grains;
  return 1;
}

void check_grains(const PlanInput& input, const std::vector<LayerPlacements>& layers) {
  if (!input.numerics.reproducible || input.mesh.size_of("model") == 1) return;
  check_model_axis(input, layers);
  check_split_rows(input, layers);
}

void set_grains(PlanInput& input) {
  const Numerics& numerics = input.numerics;
  if (!numerics.reproducible) return;
  if (sums_of(input.model).routing > 0)
    throw ConfigError("numerics.reproducible", "true",
                      "needs model.transformer.experts = 0: experts sum in no fixed order");
  if (input.ties_stages())
    throw ConfigError(
        "numerics.reproducible", "true",
        "needs model.transformer.tied = false with a pipeline: the first and the last "
        "stage sum the gradients of their microbatches apart");
  for (const auto& [key, value] : {std::pair{"numerics.grains", numerics.grains},
                                   std::pair{"numerics.model_grains", numerics.model_grains}})
    if (!is_power_of_two(value))
      throw ConfigError(key, std::to_string(value), "must be a power of two");
  if (const Size ranks = input.mesh.size_of("context"); ranks > 1)
    throw ConfigError("numerics.reproducible", "true",
                      "is not possible with the mesh axis context = {}, whose ranks sum over the "
                      "positions of a sample; use 1",
                      ranks);
  const Size parts = input.batch_ranks();
  if (!is_power_of_two(parts))
    throw ConfigError("numerics.reproducible", "true",
                      "needs a power of two of ranks of the batch, not {}; the nearest are {} and "
                      "{}",
                      parts, Size{1} << (tree_levels(parts) - 1), Size{1} << tree_levels(parts));
  if (numerics.grains % parts != 0)
    throw ConfigError("numerics.grains", std::to_string(numerics.grains),
                      "must be at least {}, the number of ranks of the batch", parts);
  if (const Size ranks = input.mesh.size_of("model"); numerics.model_grains % ranks != 0)
    throw ConfigError("numerics.model_grains", std::to_string(numerics.model_grains),
                      "must be a multiple of the {} of the mesh axis model",
                      counted(ranks, "rank"));
  const Size grains = numerics.grains / parts;
  if (input.microbatches != 1 && input.microbatches != grains)
    throw ConfigError(
        "training.microbatches", std::to_string(input.microbatches),
        "must be {} with numerics.reproducible, or absent: each of the {} grains of a "
        "rank is a microbatch",
        grains, grains);
  input.microbatches = grains;
}

}  // namespace tessera
