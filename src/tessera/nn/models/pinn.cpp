// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/model_checks.hpp>

namespace tessera {
namespace {

void check_jets(std::string_view key, Activation activation) {
  if (!has_jets(activation))
    throw ConfigError(key, fmt::format("\"{}\"", name_of(activation)),
                      "must be \"tanh\" or \"identity\" for model.kind = \"pinn\", which needs its "
                      "first three derivatives");
}

}  // namespace

ModelSpec pinn(const PinnConfig& config, const MlpConfig& layers) {
  check_size("model.pinn.width", config.width);
  check_size("model.pinn.layers", config.layers, most_layers);
  check_jets("model.activation", layers.activation);
  check_jets("model.output_activation", layers.output_activation);

  ModelSpec model{{}, jet_dimensions, layers.initializer, layers.seed};
  model.input_positions = jet_rows;
  model.targets = Targets::residuals;
  Size before = LayerSpec::data, width = jet_dimensions;
  for (Size l = 0; l <= config.layers; ++l) {
    const bool is_last = l == config.layers, even = l % 2 == 0;
    const Size out = is_last ? 1 : config.width;
    before =
        append_dense(model, {.unit = fmt::format("layer{}", l + 1),
                             .input = before,
                             .in = width,
                             .out = out,
                             .logical_in = even ? "embed" : "mlp",
                             .logical_out = even ? "mlp" : "embed",
                             .activation = is_last ? layers.output_activation : layers.activation,
                             .bias = layers.bias,
                             .number = static_cast<std::uint32_t>(l),
                             .of_jets = true});
    width = out;
  }
  return model;
}

}  // namespace tessera
