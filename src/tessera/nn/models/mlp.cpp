// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/base/error.hpp>
#include <tessera/nn/models/model_checks.hpp>

namespace tessera {

ModelSpec mlp(const MlpConfig& config) {
  const std::string widths = fmt::format("[{}]", fmt::join(config.widths, ", "));
  if (config.widths.size() < 2)
    throw ConfigError("model.widths", widths, "must name at least an input and an output width");
  check_sizes("model.widths", config.widths);

  ModelSpec model{{}, config.widths.front(), config.initializer, config.seed};
  const std::size_t layers = config.widths.size() - 1;
  Size before = LayerSpec::data;
  for (std::size_t l = 0; l < layers; ++l) {
    const bool even = l % 2 == 0;
    before =
        append_dense(model, {fmt::format("layer{}", l + 1), before, config.widths[l],
                             config.widths[l + 1], even ? "embed" : "mlp", even ? "mlp" : "embed",
                             l + 1 < layers ? config.activation : config.output_activation,
                             config.bias, static_cast<std::uint32_t>(l)});
  }
  return model;
}

}  // namespace tessera
