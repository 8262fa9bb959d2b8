// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/model_fields.hpp>

namespace tessera {
const Fields<VaeConfig>& vae_fields() {
  using C = VaeConfig;
  static const Fields<C> fields{
      {"model.vae.input_width", &C::input_width, "columns of x and of the prediction", a_width},
      {"model.vae.hidden", &C::hidden,
       "widths of the encoder's hidden layers; the decoder has them in reverse",
       Rule<C>{[](const C& c) { return allowed_widths(c.hidden); }, When::set}},
      {"model.vae.latent", &C::latent, "number of latent variables", a_width},
      {"model.vae.beta", &C::beta, "weight of the KL divergence in the loss", not_negative},
  };
  return fields;
}

ModelSpec vae(const VaeConfig& config, const MlpConfig& layers) {
  check(vae_fields(), config);
  check_no_output_activation("vae", layers);
  ModelSpec model{{}, config.input_width, layers.initializer, layers.seed};
  std::uint32_t number = 0;
  std::vector<Size> widths{config.input_width};
  widths.insert(widths.end(), config.hidden.begin(), config.hidden.end());
  const Size hidden = append_chain(
      model, {.unit = "encoder", .widths = widths, .last_activation = layers.activation}, layers,
      number);
  const auto head = [&](const char* name) {
    return append_dense(model, {.unit = name,
                                .input = hidden,
                                .in = widths.back(),
                                .out = config.latent,
                                .logical_in = config.hidden.size() % 2 == 0 ? "embed" : "mlp",
                                .logical_out = "embed",
                                .bias = layers.bias,
                                .number = number++});
  };
  const Size mean = head("mean"), logvar = head("logvar");
  const Size z = model.append(reparameterize("latent/output", "logvar", mean, logvar, config.latent,
                                             config.beta, layers.seed));
  widths.push_back(config.latent);
  std::reverse(widths.begin(), widths.end());
  append_chain(model, {.unit = "decoder", .input = z, .widths = widths}, layers, number);
  return model;
}

}  // namespace tessera
