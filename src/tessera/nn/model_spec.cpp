// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/error.hpp>
#include <tessera/nn/model_spec.hpp>

namespace tessera {

Size ModelSpec::num_parameters() const { return unit_offset(static_cast<Size>(layers.size())); }

Size ModelSpec::unit_elements(Size layer) const { return layers.at(layer).num_parameters(); }

Size ModelSpec::unit_offset(Size layer) const {
  Size offset = 0;
  for (Size l = 0; l < layer; ++l) offset += unit_elements(l);
  return offset;
}

std::vector<ParameterSpec> ModelSpec::parameters() const {
  std::vector<ParameterSpec> all;
  Size l = 0;
  for (const LinearSpec& layer : layers) {
    all.push_back(
        {layer.name + "/kernel", {layer.in, layer.out}, {layer.logical_in, layer.logical_out}, l});
    if (layer.bias) all.push_back({layer.name + "/bias", {layer.out}, {layer.logical_out}, l});
    ++l;
  }
  return all;
}

Size ModelSpec::input_width() const { return layers.front().in; }

Size ModelSpec::output_width() const { return layers.back().out; }

ModelSpec mlp(const MlpConfig& config) {
  std::string widths;
  bool positive = true;
  for (Size width : config.widths) {
    widths += (widths.empty() ? "" : ", ") + std::to_string(width);
    positive = positive && width > 0;
  }
  widths = "[" + widths + "]";
  if (config.widths.size() < 2) {
    throw ConfigError("model.widths", widths, "must name at least an input and an output width");
  }
  if (!positive) throw ConfigError("model.widths", widths, "must all be positive");

  ModelSpec model{{}, config.initializer, config.seed};
  const std::size_t num_layers = config.widths.size() - 1;
  for (std::size_t l = 0; l < num_layers; ++l) {
    const bool even = l % 2 == 0;
    model.layers.push_back({"layer" + std::to_string(l + 1), config.widths[l], config.widths[l + 1],
                            l + 1 < num_layers ? config.activation : config.output_activation,
                            config.bias, even ? "embed" : "mlp", even ? "mlp" : "embed"});
  }
  return model;
}

}  // namespace tessera
