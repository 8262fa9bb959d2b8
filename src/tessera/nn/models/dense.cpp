// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/models.hpp>

namespace tessera {

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

}  // namespace tessera
