// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>
#include <utility>

#include <tessera/base/error.hpp>
#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/model_spec.hpp>

namespace tessera {
namespace {

/// The batch's x or the output of a layer.
struct Tensor {
  std::string_view name;
  Size columns, positions;
};

Tensor tensor(const ModelSpec& model, Size input, const std::string& reader) {
  if (input == LayerSpec::data) return {"x", model.input_width, model.input_positions};
  if (input < 0 || input >= static_cast<Size>(model.layers.size()))
    throw Error(ExitCode::usage, "model: {} reads layer {}, but {} layers precede it", reader,
                input, model.layers.size());
  const LayerSpec& layer = model.layers[input];
  return {layer.name, layer.out(), layer.positions()};
}

bool has_parameter(const ModelSpec& model, std::string_view unit, std::string_view name) {
  return std::any_of(model.layers.begin(), model.layers.end(), [&](const LayerSpec& layer) {
    return layer.unit == unit &&
           std::any_of(layer.parameters.begin(), layer.parameters.end(),
                       [&](const ParameterSpec& parameter) { return parameter.name == name; });
  });
}

/// Returns true if the parameters have the shapes that the layer's indices give them.
bool shapes_agree(const LayerSpec& layer) {
  for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
    std::string_view indices = layer.kind->expression.parameters[p].indices;
    for (const Size extent : layer.parameters[p].shape) {
      const std::size_t end = std::min(indices.find(','), indices.size());
      Size product = 1;
      for (const char index : indices.substr(0, end)) product *= layer.total(index);
      if (end == 0 || product != extent) return false;
      indices.remove_prefix(std::min(end + 1, indices.size()));
    }
    if (!indices.empty()) return false;
  }
  return true;
}

}  // namespace

Size ModelSpec::num_parameters() const {
  Size sum = 0;
  for (const LayerSpec& layer : layers) sum += layer.num_parameters();
  return sum;
}

Size ModelSpec::append(LayerSpec layer) {
  const std::string_view input = layer.kind->expression.inputs[0].indices;
  if (const char row = input[1]; input[0] == 's' && row != ',')
    layer.sizes.emplace(row, tensor(*this, layer.inputs.front(), layer.name).positions);
  for (std::size_t i = 0; i < layer.inputs.size(); ++i) {
    const Tensor made = tensor(*this, layer.inputs[i], layer.name);
    const auto expect = [&](Size there, Size wanted, const char* what) {
      if (there != wanted)
        throw Error(ExitCode::usage, "model: {} reads {} {}, but {} has {}", layer.name, wanted,
                    what, made.name, there);
    };
    expect(made.columns, layer.columns_of(i), "columns");
    expect(made.positions, layer.positions_of(i), "positions of a sample");
  }
  for (const ParameterSpec& parameter : layer.parameters)
    if (has_parameter(*this, layer.unit, parameter.name))
      throw Error(ExitCode::usage, "model: {} has a second parameter {}", layer.name,
                  path_of(layer, parameter));
  if (!shapes_agree(layer))
    throw Error(ExitCode::usage, "model: {} cannot turn {} columns into {} with its parameters",
                layer.name, layer.in(), layer.out());
  layers.push_back(std::move(layer));
  return static_cast<Size>(layers.size()) - 1;
}

LayerSums sums_of(const ModelSpec& model, Size layers) {
  LayerSums sums;
  for (Size l = 0; l < layers; ++l) {
    sums.losses += static_cast<Size>(model.layers[l].kind->loss_terms.size());
    if (const auto* routing = std::get_if<Routing>(&model.layers[l].settings))
      sums.routing += 3 * routing->experts;
  }
  return sums;
}

LayerSums sums_of(const ModelSpec& model) {
  return sums_of(model, static_cast<Size>(model.layers.size()));
}

void separate_roles(ModelSpec& model) {
  std::vector<LayerSpec>& layers = model.layers;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (layers[l].kind->expression.streamed.empty() || layers[l].inputs.size() > 1) continue;
    const auto made = static_cast<Size>(l);
    layers.insert(layers.begin() + made, keys_values(layers[l]));
    for (std::size_t reader = ++l; reader < layers.size(); ++reader)
      for (Size& read : layers[reader].inputs)
        if (read >= made) ++read;
    layers[l].inputs.push_back(made);
    layers[l].sizes.emplace('t', layers[l].total('p'));
  }
}

bool attends(const ModelSpec& model) {
  return std::any_of(model.layers.begin(), model.layers.end(), [](const LayerSpec& layer) {
    return !layer.kind->expression.streamed.empty();
  });
}

bool draws(const ModelSpec& model) {
  return std::any_of(model.layers.begin(), model.layers.end(), [](const LayerSpec& layer) {
    return std::holds_alternative<LatentDraw>(layer.settings);
  });
}

PassCount count_flops(const std::vector<LayerSpec>& layers, Size samples) {
  PassCount count;
  for (const LayerSpec& layer : layers) {
    const LayerProducts products = layer_products(layer, samples);
    for (const GemmShape& product : products.forward) count.forward += product.flops();
    for (const GemmShape& product : products.backward) count.backward += product.flops();
  }
  return count;
}

PassCount count_operands(const LayerSpec& layer, Size samples) {
  const LayerKind& kind = *layer.kind;
  Size inputs = 0;
  for (std::size_t i = 0; i < layer.inputs.size(); ++i)
    inputs += samples * layer.positions_of(i) * layer.columns_of(i);
  const Size output = samples * layer.positions() * layer.out(),
             saved = samples * layer.positions() * kind.saved_columns(layer),
             parameters = layer.tied_to < 0 ? layer.num_parameters() : layer.size("vi");
  const Size read_again =
      (kind.reads_inputs(layer) ? inputs : 0) + (kind.reads_output(layer) ? output : 0);
  return {static_cast<double>(inputs + output + saved + parameters),
          static_cast<double>(inputs + output + saved + 2 * parameters + read_again)};
}

std::vector<GemmShape> products_of(const LayerSpec& layer, Size samples) {
  LayerProducts products = layer_products(layer, samples);
  std::vector<GemmShape> all = std::move(products.forward);
  all.insert(all.end(), products.backward.begin(), products.backward.end());
  return all;
}

}  // namespace tessera
