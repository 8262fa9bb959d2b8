// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/split.hpp>
#include <tessera/plan/layers.hpp>

namespace tessera {
namespace {

constexpr Placement whole = Placement::replicate();

[[noreturn]] void reject_spec(const std::string& path, const PartitionSpec& spec,
                              const std::string& allowed) {
  throw ConfigError(fmt::format("distributed.parameter_specs.\"{}\"", path),
                    fmt::format("\"{}\"", spec.to_string()), allowed);
}

/// The placement along `model`; flat units, not dimensions, lie over the other axes.
Placement along_model(const Placements& placements, const MeshShape& mesh, const std::string& path,
                      const PartitionSpec& spec) {
  Placement model = whole;
  for (std::size_t a = 0; a < placements.size(); ++a) {
    if (mesh.axes()[a].name == "model")
      model = placements[a];
    else if (!placements[a].is_replicate())
      reject_spec(path, spec,
                  "may name the axis model only; over data and fsdp, strategies shard flat units");
  }
  return mesh.size_of("model") > 1 ? model : whole;
}

Placement kernel_placement(const PlanInput& input, const LinearSpec& layer) {
  const std::string path = layer.name + "/kernel";
  const auto given = input.parameter_specs.find(path);
  const PartitionSpec spec = given != input.parameter_specs.end()
                                 ? given->second
                                 : partition_spec_for_names({layer.logical_in, layer.logical_out},
                                                            input.rules, input.mesh);
  return along_model(to_placements(spec, input.mesh, 2), input.mesh, path, spec);
}

/// The bias is added to the product's columns, so it lies as they do.
void check_bias(const PlanInput& input, const LinearSpec& layer, Placement bias) {
  const std::string path = layer.name + "/bias";
  const auto given = input.parameter_specs.find(path);
  if (given == input.parameter_specs.end()) return;
  const Placement asked =
      along_model(to_placements(given->second, input.mesh, 1), input.mesh, path, given->second);
  if (asked != bias)
    reject_spec(path, given->second,
                fmt::format("must be \"{}\", as the output dimension of {}/kernel lies",
                            bias.is_shard() ? "P('model')" : "P(None)", layer.name));
}

LayerLayout layout_of(Placement kernel) {
  if (kernel.is_shard(1))
    return {kernel, whole, Placement::shard(1), Placement::shard(1), Placement::partial()};
  if (kernel.is_shard(0))
    return {kernel, Placement::shard(1), Placement::partial(), whole, Placement::shard(1)};
  return {kernel, whole, whole, whole, whole};
}

void check_paths(const PlanInput& input) {
  for (const auto& [path, spec] : input.parameter_specs) {
    bool known = false;
    for (const ParameterSpec& parameter : input.model.parameters())
      known = known || parameter.path == path;
    if (!known) reject_spec(path, spec, "must be the path of a parameter, as layer1/kernel");
  }
}

/// Rows can be split where a row-parallel layer, fed without a redistribution, feeds one that needs
/// its input whole.
void split_rows(const PlanInput& input, std::vector<LayerLayout>& layers) {
  bool any = false;
  for (std::size_t l = 0; l + 1 < layers.size(); ++l) {
    const bool fed = l > 0 && layers[l - 1].output == layers[l].input;
    if (!layers[l].product.is_partial() || !fed || !layers[l + 1].input.is_replicate()) continue;
    layers[l].output = Placement::shard(0);
    any = true;
  }
  if (!any)
    throw ConfigError("distributed.sequence_parallel", "true",
                      "needs a row-parallel layer between two others; this model has none");
  const std::size_t model = *input.mesh.find("model");
  for (const std::string& axis : batch_axes(input.mesh))
    if (*input.mesh.find(axis) > model)
      throw ConfigError("distributed.sequence_parallel", "true",
                        "needs the mesh axis model behind " + axis);
}

}  // namespace

Layouts::Layouts(const PlanInput& input) : model_ranks_(input.mesh.size_of("model")) {
  check_paths(input);
  for (const LinearSpec& layer : input.model.layers) {
    layers_.push_back(layout_of(kernel_placement(input, layer)));
    check_bias(input, layer, layers_.back().bias());
  }
  if (input.sequence_parallel && model_ranks_ > 1) split_rows(input, layers_);
}

Placement Layouts::output_before(Size layer) const {
  return layer == 0 ? whole : layers_[layer - 1].output;
}

Transition Layouts::to_output(Size layer) const {
  return transition(layers_[layer].product, layers_[layer].output);
}

Transition Layouts::to_input(Size layer) const {
  return transition(output_before(layer), layer == size() ? whole : layers_[layer].input);
}

Transition Layouts::to_gradient(Size layer) const {
  if (layer == 0) return Transition::keep;
  const Placement given = layer == size() ? whole : layers_[layer].input_gradient;
  return transition(given, output_before(layer));
}

bool Layouts::remake_input(Size layer) const {
  const bool still_there = layer + 1 == size() && to_input(size()) == Transition::keep;
  return to_input(layer) != Transition::keep && !still_there;
}

ModelSpec Layouts::local_model(const ModelSpec& model, Size coordinate) const {
  ModelSpec local = model;
  for (Size l = 0; l < size(); ++l) {
    const Block block = kernel_block(model, l, coordinate);
    local.layers[l].in = block.extent[0];
    local.layers[l].out = block.extent[1];
  }
  return local;
}

Block Layouts::kernel_block(const ModelSpec& model, Size layer, Size coordinate) const {
  const Shape shape{model.layers[layer].in, model.layers[layer].out};
  Block block{{0, 0}, shape};
  if (const Placement kernel = layers_[layer].kernel; kernel.is_shard()) {
    const Range part = balanced_split(shape[kernel.dim()], model_ranks_, coordinate);
    block.offset[kernel.dim()] = part.begin;
    block.extent[kernel.dim()] = part.count;
  }
  return block;
}

}  // namespace tessera
