// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/model_fields.hpp>

namespace tessera {

const Fields<ResidualMlpConfig>& residual_mlp_fields() {
  using C = ResidualMlpConfig;
  static const Fields<C> fields{
      {"model.residual_mlp.input_width", &C::input_width, "columns of x", a_width},
      {"model.residual_mlp.width", &C::width, "width of the residual stream", a_width},
      {"model.residual_mlp.inner_width", &C::inner_width, "width between fc1 and fc2 of a block",
       a_width},
      {"model.residual_mlp.blocks", &C::blocks, "number of blocks x + fc2(activation(fc1(ln(x))))",
       a_depth},
      {"model.residual_mlp.output_width", &C::output_width, "columns of y", a_width},
  };
  return fields;
}

ModelSpec residual_mlp(const ResidualMlpConfig& config, const MlpConfig& layers) {
  check(residual_mlp_fields(), config);
  ModelSpec model{{}, config.input_width, layers.initializer, layers.seed};
  std::uint32_t number = 0;
  const auto dense = [&](std::string unit, Size input, Size in, Size out, std::string logical_in,
                         std::string logical_out, Activation activation) {
    return append_dense(model, {std::move(unit), input, in, out, std::move(logical_in),
                                std::move(logical_out), activation, layers.bias, number++});
  };
  const Size width = config.width, inner = config.inner_width;
  Size x =
      dense("input", LayerSpec::data, config.input_width, width, "", "embed", Activation::identity);
  for (Size b = 1; b <= config.blocks; ++b) {
    const std::string block = fmt::format("block{}", b);
    const Size normal =
        model.append(layer_norm(block + "/ln/output", block + "/ln", x, width, "embed"));
    const Size hidden =
        dense(block + "/fc1", normal, width, inner, "embed", "mlp", layers.activation);
    const Size change =
        dense(block + "/fc2", hidden, inner, width, "mlp", "embed", Activation::identity);
    x = model.append(add(block + "/output", block, x, change, width));
  }
  dense("output", x, width, config.output_width, "embed", "", layers.output_activation);
  return model;
}

}  // namespace tessera
