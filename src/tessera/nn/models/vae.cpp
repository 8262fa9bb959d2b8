// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/base/error.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/model_checks.hpp>

namespace tessera {
namespace {

void check_vae(const VaeConfig& config, const MlpConfig& layers) {
  check_size("model.vae.input_width", config.input_width);
  check_size("model.vae.latent", config.latent);
  check_sizes("model.vae.hidden", config.hidden);
  check_no_output_activation("vae", layers);
}

}  // namespace

ModelSpec vae(const VaeConfig& config, const MlpConfig& layers) {
  check_vae(config, layers);
  ModelSpec model{{}, config.input_width, layers.initializer, layers.seed};
  std::uint32_t number = 0;
  const auto dense = [&](std::string unit, Size input, Size in, Size out, bool even,
                         std::string logical_out, Activation activation) {
    return append_dense(model, {std::move(unit), input, in, out, even ? "embed" : "mlp",
                                std::move(logical_out), activation, layers.bias, number++});
  };
  // A chain of dense layers, the first with logical axes (embed, mlp).
  const auto chain = [&](const char* name, Size input, const std::vector<Size>& widths,
                         bool ends_active) {
    for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
      const bool even = l % 2 == 0, last = l + 2 == widths.size();
      input = dense(fmt::format("{}{}", name, l + 1), input, widths[l], widths[l + 1], even,
                    even ? "mlp" : "embed",
                    last && !ends_active ? Activation::identity : layers.activation);
    }
    return input;
  };

  std::vector<Size> widths{config.input_width};
  widths.insert(widths.end(), config.hidden.begin(), config.hidden.end());
  const Size hidden = chain("encoder", LayerSpec::data, widths, true);
  const auto head = [&](const char* name) {
    return dense(name, hidden, widths.back(), config.latent, config.hidden.size() % 2 == 0, "embed",
                 Activation::identity);
  };
  const Size mean = head("mean"), logvar = head("logvar");
  const Size z = model.append(reparameterize("latent/output", "logvar", mean, logvar, config.latent,
                                             config.beta, layers.seed));
  widths.push_back(config.latent);
  std::reverse(widths.begin(), widths.end());
  chain("decoder", z, widths, false);
  return model;
}

}  // namespace tessera
