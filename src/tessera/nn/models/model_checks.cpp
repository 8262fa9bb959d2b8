// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/base/error.hpp>
#include <tessera/nn/models/model_checks.hpp>

namespace tessera {

void check_size(std::string_view key, Size value, Size most) {
  if (value < 1) throw ConfigError(key, std::to_string(value), "must be positive");
  if (value > most) throw ConfigError(key, std::to_string(value), "must be at most {}", most);
}

void check_sizes(std::string_view key, const std::vector<Size>& values) {
  const auto text = [&] { return fmt::format("[{}]", fmt::join(values, ", ")); };
  if (static_cast<Size>(values.size()) > most_layers + 1)
    throw ConfigError(key, text(), "has {} widths; a model has at most {}", values.size(),
                      most_layers + 1);
  for (const Size value : values) {
    if (value < 1) throw ConfigError(key, text(), "must all be positive");
    if (value > most_columns)
      throw ConfigError(key, text(), "must all be at most {}", most_columns);
  }
}

void check_no_output_activation(std::string_view kind, const MlpConfig& layers) {
  if (layers.output_activation != Activation::identity)
    throw ConfigError("model.output_activation",
                      fmt::format("\"{}\"", name_of(layers.output_activation)),
                      "must be \"identity\" for model.kind = \"{}\"", kind);
}

}  // namespace tessera
