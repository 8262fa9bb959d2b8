// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include <fmt/format.h>

#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/models.hpp>

namespace tessera {

Size append_dense(ModelSpec& model, const DenseSpec& dense) {
  const bool finishes = dense.bias || dense.activation != Activation::identity;
  const bool grouped = dense.experts > 0;
  ParameterSpec kernel{"kernel",
                       {dense.in, dense.out * dense.gates},
                       {dense.logical_in, dense.logical_out},
                       Initial::drawn,
                       2 * dense.number};
  if (grouped) {
    kernel.shape.insert(kernel.shape.begin(), dense.experts);
    kernel.logical_axes = {"experts", "", ""};
  }
  const std::string output = dense.unit + "/output";
  const Size product = model.append(linear(finishes ? dense.unit + "/product" : output, dense.unit,
                                           dense.input, kernel, dense.gates));
  if (!finishes) return product;
  const Size width = model.layers.back().out();
  const std::string logical = grouped ? "experts" : dense.logical_out;
  const auto bias_axis = dense.bias ? std::optional(logical) : std::nullopt;
  return model.append(
      dense.of_jets
          ? jet_activation(output, dense.unit, product, width, dense.activation, bias_axis)
          : pointwise(output, dense.unit, product, width, dense.activation, bias_axis,
                      dense.experts, dense.gates));
}

Size append_chain(ModelSpec& model, const ChainSpec& chain, const MlpConfig& layers,
                  std::uint32_t& number) {
  Size last = chain.input;
  const std::size_t count = chain.widths.size() - 1;
  for (std::size_t l = 0; l < count; ++l) {
    const bool even = l % 2 == 0;
    last = append_dense(model,
                        {.unit = fmt::format("{}{}", chain.unit, l + 1),
                         .input = last,
                         .in = chain.widths[l],
                         .out = chain.widths[l + 1],
                         .logical_in = even ? "embed" : "mlp",
                         .logical_out = even ? "mlp" : "embed",
                         .activation = l + 1 < count ? layers.activation : chain.last_activation,
                         .bias = layers.bias,
                         .number = number++,
                         .of_jets = chain.of_jets});
  }
  return last;
}

}  // namespace tessera
