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
  std::vector<Size> widths(config.layers + 2, config.width);
  widths.front() = jet_dimensions;
  widths.back() = 1;
  std::uint32_t number = 0;
  append_chain(model,
               {.unit = "layer",
                .widths = widths,
                .last_activation = layers.output_activation,
                .of_jets = true},
               layers, number);
  return model;
}

}  // namespace tessera
