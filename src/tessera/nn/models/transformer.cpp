// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

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
  const TransformerConfig usual;
  const auto needs_experts = [&](const char* key, auto value, auto unset) {
    if (config.experts == 0 && value != unset)
      throw ConfigError(fmt::format("model.transformer.{}", key), fmt::format("{}", value),
                        "needs model.transformer.experts");
  };
  needs_experts("top_k", config.top_k, usual.top_k);
  needs_experts("capacity_factor", config.capacity_factor, usual.capacity_factor);
  needs_experts("balance_loss", config.balance_loss, usual.balance_loss);
  needs_experts("router_z_loss", config.router_z_loss, usual.router_z_loss);
  // The columns of all experts are those of one matrix.
  if (config.experts > 0)
    check_size("model.transformer.experts", config.experts,
               most_columns / std::max(config.width, config.inner_width));
  const Size most = std::min(config.experts, max_choices);
  if (config.experts > 0 && (config.top_k < 1 || config.top_k > most))
    throw ConfigError("model.transformer.top_k", std::to_string(config.top_k),
                      "must be from 1 to {}", most);
}

/// Returns the smallest C with C experts / (top_k context) >= capacity_factor, at most the context.
/// The quotient is rounded once, as the factor was when it was read. So they are equal where the
/// decimal number in the file equals the quotient; a product with the factor would be rounded again
/// and could exceed C.
Size capacity_of(const TransformerConfig& config) {
  if (config.capacity_factor == 0) return config.context;
  const auto choices = static_cast<double>(config.top_k * config.context);
  const auto factor_of = [&](Size capacity) {
    return static_cast<double>(capacity * config.experts) / choices;
  };
  // Begins below C, or at 1.
  const double near = config.capacity_factor * (choices / static_cast<double>(config.experts)) - 2;
  auto capacity = static_cast<Size>(std::clamp(near, 1.0, static_cast<double>(config.context)));
  while (capacity < config.context && factor_of(capacity) < config.capacity_factor) ++capacity;
  return capacity;
}

Routing routing_of(const TransformerConfig& config) {
  return {config.experts, config.top_k, capacity_of(config), config.balance_loss,
          config.router_z_loss};
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
                         std::string logical_out, Activation activation, bool bias,
                         Size experts = 0) {
    return append_dense(
        model, {std::move(unit), input, in, out, std::move(logical_in), std::move(logical_out),
                activation, bias, number++, false, experts});
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
    Size input = normal(block + "/ln2", x), gates = -1;
    const Routing routing = config.experts > 0 ? routing_of(config) : Routing{};
    if (config.experts > 0) {
      const std::string router = block + "/router";
      gates = model.append(
          route(router + "/gates", router,
                dense(router, input, width, config.experts, "embed", "", none, false), routing));
      input = model.append(
          dispatch(router + "/slots", router, input, gates, width, config.context, routing));
    }
    const Size hidden = dense(block + "/fc1", input, width, config.inner_width, "embed", "mlp",
                              layers.activation, layers.bias, config.experts);
    Size change = dense(block + "/fc2", hidden, config.inner_width, width, "mlp", "embed", none,
                        layers.bias, config.experts);
    if (config.experts > 0)
      change = model.append(combine(block + "/fc2/combined", block + "/fc2", change, gates, width,
                                    config.context, routing));
    x = model.append(add(block + "/output", block, x, change, width));
  }
  dense("logits", normal("ln", x), width, config.vocabulary, "embed", "vocab", none, false);
  return model;
}

}  // namespace tessera
