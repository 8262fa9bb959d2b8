// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

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

/// Returns true if `model` may split the columns of a layer's inputs (0) or output (1) on any mesh.
bool may_split(const PlanInput& input, const LayerSpec& layer, std::size_t d) {
  if (!layer.uses_parameters()) return true;
  const LayerSpec& owner = layer.tied_to < 0 ? layer : input.model.layers[layer.tied_to];
  const ParameterSpec& kernel = owner.parameters[0];
  if (kernel.shape.size() != 2) return false;
  const std::size_t dimension = layer.tied_to < 0 ? d : 1 - d;  // products with the transpose
  return may_split(input, path_of(owner, kernel), kernel, dimension);
}

/// Returns the units of the columns of each layer's inputs and output: the values of the index that
/// `model` could split, or fewer if other layers share these columns and have fewer.
std::vector<std::array<Size, 2>> column_units(const ModelSpec& model) {
  std::vector<std::array<Size, 2>> units(model.layers.size());
  std::vector<std::pair<Size*, Size*>> equal;
  for (std::size_t l = 0; l < units.size(); ++l) {
    const LayerSpec& layer = model.layers[l];
    for (const Layout& along : model_choices(layer)) {
      for (std::size_t i = 0; i < layer.inputs.size(); ++i) {
        if (!along.inputs[i].is_shard(1)) continue;
        units[l][0] = layer.total(along.split[0]);
        if (layer.inputs[i] != LayerSpec::data)
          equal.emplace_back(&units[l][0], &units[layer.inputs[i]][1]);
        if (along.output.is_shard(1)) equal.emplace_back(&units[l][0], &units[l][1]);
      }
      if (along.output.is_shard(1)) units[l][1] = layer.total(along.split[0]);
    }
  }
  for (bool changed = true; std::exchange(changed, false);)
    for (const auto& [a, b] : equal)
      if (*a != *b && *a > 0 && *b > 0) changed = true, *a = *b = std::min(*a, *b);
  return units;
}

}  // namespace

Size batch_coordinate(const PlanInput& input, Size rank) {
  const MeshShape& mesh = input.mesh;
  const AxisSet shards = shard_axes(input.strategy, mesh), replicas = batch_axes(mesh) - shards;
  return mesh.coordinate(rank, replicas) * mesh.group_size(shards) + mesh.coordinate(rank, shards);
}

Range grains_at(const PlanInput& input, Size place) {
  return balanced_split(input.numerics.grains, input.batch_ranks(), place);
}

std::vector<Range> nodes_over(const PlanInput& input, AxisSet axes, Size uses, Size rank) {
  std::vector<Size> places;
  for (const Size of : input.mesh.group(axes, rank)) places.push_back(batch_coordinate(input, of));
  std::sort(places.begin(), places.end());
  std::vector<Range> nodes;
  for (Size use = 0; use < uses; ++use)
    for (const Size place : places)
      for (const Range& node : largest_nodes(grains_at(input, place)))
        push_node(nodes, {use * input.numerics.grains + node.begin, node.count});
  return nodes;
}

std::vector<std::vector<Range>> gradient_nodes(const PlanInput& input, const BucketPlan& bucket,
                                               AxisSet axes, Size rank) {
  std::vector<std::vector<Range>> nodes;
  for (const Size of : input.mesh.group(axes, rank))
    nodes.push_back(nodes_over(input, bucket.added_before(input.mesh, axes), bucket.uses, of));
  return nodes;
}

Range batch_share(const PlanInput& input, Size batch, Size rank) {
  const MeshShape& mesh = input.mesh;
  if (input.numerics.reproducible)
    return items_of(batch, input.numerics.grains, grains_at(input, batch_coordinate(input, rank)));
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
      microbatches_(input.microbatches),
      own_(static_cast<std::size_t>(input.mesh.coordinate(rank, "expert"))),
      batch_axes_(batch_axes(input.mesh)) {
  for (const Size other : input.mesh.group(input.mesh.axes_named({"expert"}), rank))
    of_ranks_.push_back({batch_share(input, batch, other).count,
                         input.numerics.reproducible
                             ? grains_at(input, batch_coordinate(input, other)).count
                             : microbatches_});
}

std::vector<Size> BatchSamples::changes() const {
  std::vector<Size> changes;
  for (const OfRank& of : of_ranks_) {
    if (of.parts > 0) changes.push_back(of.samples % of.parts);
    changes.push_back(of.parts);
  }
  return changes;
}

Size BatchSamples::in(Size microbatch, AxisSet axes) const {
  if (axes == batch_axes_) return own(microbatch).count;
  Size samples = 0;
  for (const OfRank& of : of_ranks_) samples += part(of, microbatch).count;
  return samples;
}

Size BatchSamples::filled(Size microbatch) const {
  return std::count_if(of_ranks_.begin(), of_ranks_.end(),
                       [&](const OfRank& of) { return microbatch < of.parts; });
}

Size first_microbatch_samples(const PlanInput& input) {
  const Size parts = input.batch_ranks(), extra = input.batch_size % parts,
             base = input.batch_size / parts, grains = input.numerics.grains;
  if (!input.numerics.reproducible)
    // The first ranks have one sample more, and each splits its own samples into microbatches.
    return extra * balanced_split(base + 1, input.microbatches, 0).count +
           (parts - extra) * balanced_split(base, input.microbatches, 0).count;
  Size sum = 0;
  for (Size part = 0; part < std::min(parts, grains); ++part)  // others have no grain
    sum += balanced_split(input.batch_size, grains, grains_at(input, part).begin).count;
  return sum;
}

void split_in_blocks(const PlanInput& input, std::vector<LayerPlacements>& layers) {
  const auto units = column_units(input.model);
  const Size ranks = input.mesh.size_of("model"), blocks = input.numerics.model_grains;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const LayerSpec& layer = input.model.layers[l];
    Layout& along = layers[l].axes[axis_number("model")];
    if (!along.split.empty()) along.units = layer.total(along.split[0]), along.blocks = blocks;
    const auto place = [&](std::size_t d, Size columns, Placement& tensor, Placement& gradient) {
      const Size n = units[l][d];
      Split& split = layers[l].columns[d];
      if (n > 0) split = {n, tensor.is_shard(1) ? ranks : split.parts, columns / n, false, blocks};
      if (tensor.is_shard(1)) along.units = n;
      for (Placement* of : {&tensor, &gradient})
        if (of->is_shard()) *of = of->in_blocks(blocks).in_units(of->is_shard(1) ? columns / n : 1);
    };
    for (std::size_t i = layer.inputs.size(); i-- > 0;)
      place(0, layer.columns_of(i), along.inputs[i], along.input_gradients[i]);
    place(1, layer.out(), along.output, along.output_gradient);
  }
}

LayerBlocks layer_blocks(const PlanInput& input, const LayerSpec& layer,
                         const LayerPlacements& placements, Size rank) {
  const auto own = [&](std::size_t d) -> SumBlocks {
    const Split& columns = placements.columns[d];
    if (!layer.kind->sums_in_blocks || columns.blocks == 0 || !may_split(input, layer, d))
      return {};
    const Size part = columns.parts > 1 ? input.mesh.coordinate(rank, "model") : 0;
    return {columns.units, columns.blocks, columns.blocks_of(part), columns.unit};
  };
  return {own(0), own(1)};
}

SplitPart gradient_blocks(const PlanInput& input, const LayerSpec& layer,
                          const LayerPlacements& placements, Size rank) {
  const SplitPart one{Split{.parts = 1, .blocks = 1}, 0};
  if (!input.numerics.reproducible || layer.kind->sums_in_blocks) return one;
  for (const Layout& along : model_choices(layer))
    for (const Placement& gradient : along.parameter_gradients) {
      if (!gradient.is_partial()) continue;
      const bool of_heads = along.output.is_shard(1);
      const Size ranks = splits_rows(placements.along("model")) ? input.mesh.size_of("model") : 1;
      const Split split = of_heads ? placements.columns[1]
                                   : Split{.parts = ranks, .blocks = input.numerics.model_grains};
      if (split.blocks == 0) return one;
      return {split, split.parts > 1 ? input.mesh.coordinate(rank, "model") : 0};
    }
  return one;
}

Size gradient_elements(const ParameterLayout& layout, const LayerSpec& layer, Size l) {
  Size elements = 0;
  for (const ParameterPlan& parameter : layout.parameters)
    if (parameter.layer == l || (parameter.layer == layer.tied_to && parameter.number == 0))
      elements += parameter.place.count;
  return elements;
}

Size gradient_rows(const PlanInput& input, const LayerSpec& layer,
                   const LayerPlacements& placements, Size rank) {
  const SplitPart split = gradient_blocks(input, layer, placements, rank);
  return std::max<Size>(1, split.blocks_of(split.part).count);
}

void set_grains(PlanInput& input) {
  const Numerics& numerics = input.numerics;
  if (!numerics.reproducible) return;
  for (const auto& [key, value] : {std::pair{"numerics.grains", numerics.grains},
                                   std::pair{"numerics.model_grains", numerics.model_grains}})
    if (!is_power_of_two(value))
      throw ConfigError(key, std::to_string(value), "must be a power of two");
  const Size grains = grains_at(input, 0).count;  // of the ranks with the most
  if (input.microbatches != 1 && input.microbatches != grains)
    throw ConfigError(
        "training.microbatches", std::to_string(input.microbatches),
        "must be {} with numerics.reproducible, or absent: each of the {} grains of a "
        "rank is a microbatch",
        grains, grains);
  input.microbatches = grains;
}

}  // namespace tessera
