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
  std::uint32_t number = 0;
  append_chain(
      model,
      {.unit = "layer", .widths = config.widths, .last_activation = config.output_activation},
      config, number);
  return model;
}

}  // namespace tessera
