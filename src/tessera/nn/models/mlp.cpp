// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/base/error.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/models.hpp>

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

Size append_dense(ModelSpec& model, const DenseSpec& dense) {
  const bool finishes = dense.bias || dense.activation != Activation::identity;
  const ParameterSpec kernel{"kernel",
                             {dense.in, dense.out},
                             {dense.logical_in, dense.logical_out},
                             Initial::drawn,
                             2 * dense.number};
  const std::string output = dense.unit + "/output";
  const Size product = model.append(
      linear(finishes ? dense.unit + "/product" : output, dense.unit, dense.input, kernel));
  if (!finishes) return product;
  const auto finish = dense.of_jets ? jet_activation : pointwise;
  const auto bias_axis = dense.bias ? std::optional(dense.logical_out) : std::nullopt;
  return model.append(finish(output, dense.unit, product, dense.out, dense.activation, bias_axis));
}

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
