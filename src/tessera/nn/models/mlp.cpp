// SPDX-License-Identifier: Apache-2.0
#include <tessera/nn/models/model_fields.hpp>

namespace tessera {

const Fields<MlpConfig>& mlp_fields() {
  using C = MlpConfig;
  static const Fields<C> fields{
      {"model.widths", &C::widths, "layer widths of an mlp: input, hidden ..., output",
       Tier::common, Rule<C>{[](const C& c) { return allowed_widths(c.widths); }, When::set}},
      {"model.activation", &C::activation,
       "activation after hidden layers (mlp, pinn, vae), fc1 (residual_mlp, transformer), all "
       "Fourier layers but the last (fno)"},
      {"model.output_activation", &C::output_activation, "activation after the last layer"},
      {"model.bias", &C::bias, "add a bias to the outputs of linear layers"},
      {"model.initializer", &C::initializer,
       "distribution of the initial kernels (biases start at zero)"},
      {"model.seed", &C::seed, "seed of the initial parameters", a_seed},
  };
  return fields;
}

ModelSpec mlp(const MlpConfig& config) {
  if (config.widths.size() < 2)
    reject("model.widths", config.widths, "must name at least an input and an output width");
  check(mlp_fields(), config);

  ModelSpec model{{}, config.widths.front(), config.initializer, config.seed};
  std::uint32_t number = 0;
  append_chain(
      model,
      {.unit = "layer", .widths = config.widths, .last_activation = config.output_activation},
      config, number);
  return model;
}

}  // namespace tessera
