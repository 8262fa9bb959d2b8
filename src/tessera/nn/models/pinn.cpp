// SPDX-License-Identifier: Apache-2.0
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/model_fields.hpp>

namespace tessera {
namespace {

void check_jets(std::string_view key, Activation activation) {
  if (!has_jets(activation))
    reject(
        key, name_of(activation),
        "must be \"tanh\" or \"identity\" for model.kind = \"pinn\", which needs its first three "
        "derivatives");
}

}  // namespace

const Fields<PinnConfig>& pinn_fields() {
  using C = PinnConfig;
  static const Fields<C> fields{
      {"model.pinn.width", &C::width, "width of the hidden layers", a_width},
      {"model.pinn.layers", &C::layers, "number of hidden layers", a_depth},
  };
  return fields;
}

ModelSpec pinn(const PinnConfig& config, const MlpConfig& layers) {
  check(pinn_fields(), config);
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
