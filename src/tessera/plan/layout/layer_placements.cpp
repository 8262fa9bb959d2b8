// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/plan/layout/claims.hpp>
#include <tessera/plan/layout/layer_placements.hpp>

namespace tessera {
namespace {

[[noreturn]] void reject_context(const PlanInput& input, const std::string& reason) {
  throw ConfigError("distributed.mesh_axis_names", input.mesh.to_string(),
                    fmt::format("cannot split positions over {} ranks of context: {}",
                                input.mesh.size_of("context"), reason));
}

/// Checks what no layer decides.
void check_context(const PlanInput& input) {
  if (input.needs_whole_samples())
    reject_context(input, fmt::format("the loss {} needs whole samples", name_of(input.loss)));
  if (input.numerics.reproducible && input.context_attention == ContextAttention::ring)
    throw ConfigError("distributed.context_attention", "\"ring\"",
                      "must be \"gather\" or \"all_to_all\" with numerics.reproducible and an axis "
                      "context, because a ring adds in the order of its ranks");
  if (!attends(input.model) && input.context_attention != StrategyOptions{}.context_attention)
    throw ConfigError("distributed.context_attention",
                      fmt::format("\"{}\"", name_of(input.context_attention)),
                      "needs a model with attention, such as the transformer");
}

/// Checks that the ranks have positions of a layer to split, or whole groups of its columns.
void check_context(const PlanInput& input, const LayerSpec& layer,
                   const LayerPlacements& placements) {
  const Layout& along = placements.along("context");
  const bool has_rows = along.inputs[0].is_shard(0) || along.output.is_shard(0);
  const bool has_positions = std::max(layer.positions_of(0), layer.positions()) > 1;
  if (!has_context(layer.kind->expression) || (has_rows && !has_positions && layer.experts() == 0))
    reject_context(
        input, fmt::format("the {} layer {} {}", layer.kind->name, layer.name,
                           has_positions ? "needs whole samples" : "has one position per sample"));
  if (!along.output.is_shard(1)) return;
  const Size groups =
      layer.total(along.split[0]) * placements.along("model").repeats / input.mesh.size_of("model");
  if (groups % input.mesh.size_of("context") == 0) return;
  const std::string with = attends(input.model)
                               ? fmt::format("with distributed.context_attention = \"{}\" ",
                                             name_of(input.context_attention))
                               : "";
  reject_context(input, fmt::format("{}they must divide the {} {} of a rank of model evenly", with,
                                    groups, layer.groups.noun));
}

/// Returns the indices that an axis other than `model` splits.
std::string split_along(const AxisRow& axis, const PlanInput& input, const LayerSpec& layer) {
  const bool splits = input.mesh.size_of(axis.name) > 1;
  if (splits && axis.splits("experts") && layer.experts() > 0) return "e";
  if (axis.splits("batch")) return "s";
  if (splits && axis.splits("positions"))
    return context_split(layer.kind->expression, input.context_attention);
  return {};
}

/// Cuts an index of a layer: the rank has a part of what it had. The parameters that the axis
/// splits are cut with it.
void cut_index(LayerSpec& layer, char index, const Layout& along, const SplitPart& split) {
  const auto found = layer.sizes.find(index);
  if (found == layer.sizes.end()) return;
  Range& own = found->second.own;
  const Range part = split.place(split.part);
  for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
    if (!along.parameters[p].is_shard() || own.count == 0) continue;
    Size& extent = layer.parameters[p].shape[along.parameters[p].dim()];
    extent = extent / own.count * part.count;
  }
  own = {own.begin + part.begin, part.count};
}

}  // namespace

std::vector<LayerPlacements> place_layers(const PlanInput& input) {
  std::vector<Layout> along_model = choose_along_model(input);
  const bool splits_context = input.mesh.size_of("context") > 1;
  if (splits_context) check_context(input);
  std::vector<LayerPlacements> layers(along_model.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const LayerSpec& layer = input.model.layers[l];
    for (std::size_t a = 0; a < mesh_axes.size(); ++a) {
      Layout& along = layers[l].axes[a];
      along = mesh_axes[a].name == "model"
                  ? std::move(along_model[l])
                  : placements_of(layer, split_along(mesh_axes[a], input, layer));
      // Every rank stores the parameters of all positions and modes, and reads its part of them.
      if (mesh_axes[a].splits("positions"))
        std::fill(along.parameters.begin(), along.parameters.end(), Placement::replicate());
    }
    if (splits_context) check_context(input, layer, layers[l]);
  }
  if (input.numerics.reproducible) split_in_blocks(input, layers);
  return layers;
}

Placement loss_placement(const PlanInput& input, const std::vector<LayerPlacements>& layers) {
  const Placement made = layers.back().along("model").output;
  const bool stays = made.is_shard(1) && input.loss == LossKind::cross_entropy;
  return stays ? made : Placement::replicate();
}

AxisSet sample_axes(const MeshShape& mesh, const LayerPlacements& placements) {
  return axes_where(mesh, [&](const AxisRow& axis) {
    return axis.splits("batch") && placements.along(axis.name).split == "s";
  });
}

LayerSpec local_layer(const PlanInput& input, LayerSpec layer, const LayerPlacements& placements,
                      Size rank, AxisSet axes) {
  const MeshShape& mesh = input.mesh;
  const Size positions = std::max(layer.positions_of(0), layer.positions());
  // Slots have the blocks of positions, some of which may be empty.
  const Size blocks =
      input.position_blocks(layer.experts() > 0 ? input.model.output_positions() : positions);
  layer.share = {{positions, 1, 1, input.zigzag && blocks > 0, blocks}};
  // `model` cuts first: it is the last of the axes.
  for (std::size_t a = mesh_axes.size(); a-- > 0;) {
    const std::string_view name = mesh_axes[a].name;
    const auto axis = mesh.find(name);
    if (!axis || !axes.contains(*axis) || mesh.size_of(name) == 1) continue;
    const Size ranks = mesh.size_of(name), own = mesh.coordinate(rank, name);
    if (mesh_axes[a].splits("positions"))
      layer.share = input.context_share(positions, rank), layer.share.blocks = blocks;
    const Layout& along = placements.axes[a];
    for (const char index : along.split) {
      const Size all = layer.part(index).count, units = along.units > 0 ? along.units : all;
      const SplitPart even{
          {units, ranks / along.repeats, units > 0 ? all / units : 1, false, along.blocks},
          own / along.repeats};
      const std::string_view of = dimension_of(index);
      cut_index(layer, index, along, of == "positions" || of == "slots" ? layer.share : even);
    }
    if (along.repeats > 1)
      cut_index(layer, 'u', along, {{layer.part('u').count, along.repeats}, own % along.repeats});
  }
  return layer;
}

}  // namespace tessera
