// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/model_checks.hpp>

namespace tessera {
namespace {

void check(const TransformerConfig& config) {
  check_size("model.transformer.vocabulary", config.vocabulary);
  check_size("model.transformer.context", config.context, most_positions);
  check_size("model.transformer.width", config.width);
  check_size("model.transformer.heads", config.heads);
  check_size("model.transformer.blocks", config.blocks, most_layers);
  check_size("model.transformer.inner_width", config.inner_width);
  if (config.width % config.heads != 0)
    throw ConfigError("model.transformer.heads", std::to_string(config.heads),
                      "must divide model.transformer.width = {} evenly", config.width);
}

}  // namespace

ModelSpec transformer(const TransformerConfig& config, const MlpConfig& layers) {
  check(config);
  check_no_output_activation("transformer", layers);
  ModelSpec model{{}, 1, layers.initializer, layers.seed};
  model.input_positions = config.context;
  model.classes = config.vocabulary;
  model.targets = Targets::classes;

  const Size width = config.width;
  std::uint32_t number = 1;
  const auto dense = [&](std::string unit, Size input, Size in, Size out, std::string logical_in,
                         std::string logical_out, Activation activation, bool bias) {
    return append_dense(model, {std::move(unit), input, in, out, std::move(logical_in),
                                std::move(logical_out), activation, bias, number++});
  };
  const auto normal = [&](const std::string& unit, Size input) {
    return model.append(layer_norm(unit + "/output", unit, input, width, "embed"));
  };
  constexpr Activation none = Activation::identity;
  Size x = model.append(
      embedding("embedding/output", "embedding", config.vocabulary, config.context, width, 0));
  for (Size b = 1; b <= config.blocks; ++b) {
    const std::string block = fmt::format("block{}", b);
    const Size qkv = dense(block + "/qkv", normal(block + "/ln1", x), width, 3 * width, "embed",
                           "heads", none, layers.bias);
    const Size heads = model.append(causal_attention(block + "/attention", block + "/qkv", qkv,
                                                     config.heads, width / config.heads));
    const Size mixed =
        dense(block + "/proj", heads, width, width, "heads", "embed", none, layers.bias);
    x = model.append(add(block + "/attended", block, x, mixed, width));
    const Size hidden = dense(block + "/fc1", normal(block + "/ln2", x), width, config.inner_width,
                              "embed", "mlp", layers.activation, layers.bias);
    const Size change =
        dense(block + "/fc2", hidden, config.inner_width, width, "mlp", "embed", none, layers.bias);
    x = model.append(add(block + "/output", block, x, change, width));
  }
  dense("logits", normal("ln", x), width, config.vocabulary, "embed", "vocab", none, false);
  return model;
}

}  // namespace tessera
