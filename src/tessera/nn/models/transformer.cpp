// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/model_fields.hpp>

namespace tessera {
namespace {

bool has_experts(const TransformerConfig& config) { return config.experts > 0; }
bool balances_by_loss(const TransformerConfig& config) { return config.balance == Balance::loss; }
bool balances_by_bias(const TransformerConfig& config) { return config.balance == Balance::bias; }

std::string allowed_heads(const TransformerConfig& config) {
  if (config.width % config.heads == 0) return "";
  return fmt::format("must divide model.transformer.width = {} evenly", config.width);
}

std::string allowed_kv_heads(const TransformerConfig& config) {
  if (config.heads % std::max<Size>(1, config.kv_heads) == 0) return "";
  return fmt::format("must divide model.transformer.heads = {} evenly", config.heads);
}

std::string allowed_positions(const TransformerConfig& config) {
  if (config.positions == Positions::learned || config.width / config.heads % 2 == 0) return "";
  return fmt::format("needs heads of an even width; theirs is {}", config.width / config.heads);
}

bool has_rope(const TransformerConfig& config) { return config.positions == Positions::rope; }
bool scales_rope(const TransformerConfig& config) { return config.rope_scaling != 1; }

Rope rope_of(const TransformerConfig& config) {
  return {config.rope_theta, config.rope_scaling, config.rope_low_turns, config.rope_high_turns,
          scales_rope(config) ? config.rope_original_context : 0};
}

Size columns_of_fc1(const TransformerConfig& config) {
  return config.feed_forward == FeedForward::gated ? 2 * config.inner_width : config.inner_width;
}

/// The columns of all experts are those of one matrix.
std::string allowed_experts(const TransformerConfig& config) {
  const Size most = most_columns / std::max(config.width, columns_of_fc1(config));
  return config.experts <= most ? "" : fmt::format("must be at most {}", most);
}

/// Shared experts are one dense pair.
std::string allowed_shared_experts(const TransformerConfig& config) {
  const Size most = most_columns / columns_of_fc1(config);
  return config.shared_experts <= most ? "" : fmt::format("must be at most {}", most);
}

std::string allowed_choices(const TransformerConfig& config) {
  const Size most = std::min(config.experts, max_choices);
  if (!has_experts(config) || (config.top_k >= 1 && config.top_k <= most)) return "";
  return fmt::format("must be from 1 to {}", most);
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
  return {config.experts,       config.top_k,
          capacity_of(config),  balances_by_loss(config) ? config.balance_loss : 0,
          config.router_z_loss, config.router,
          config.renormalize,   balances_by_bias(config) ? config.bias_rate : 0};
}

}  // namespace

const Fields<TransformerConfig>& transformer_fields() {
  using C = TransformerConfig;
  const Rule<C> needs_experts{has_experts, "needs model.transformer.experts"};
  const Rule<C> needs_rope{has_rope, "needs model.transformer.positions = \"rope\""};
  const Rule<C> needs_scaling{scales_rope, "needs model.transformer.rope_scaling"};
  static const Fields<C> fields{
      {"model.transformer.vocabulary", &C::vocabulary,
       "number of classes of a sequence element (tokens)", a_width},
      {"model.transformer.context", &C::context, "positions in a sequence", up_to(most_positions)},
      {"model.transformer.width", &C::width, "width of the residual stream", a_width},
      {"model.transformer.heads", &C::heads, "number of heads per attention layer", a_width,
       Rule<C>{allowed_heads, When::always}},
      {"model.transformer.blocks", &C::blocks, "number of blocks", a_depth},
      {"model.transformer.inner_width", &C::inner_width, "width between fc1 and fc2 of a block",
       a_width},
      {"model.transformer.norm", &C::norm,
       "norm before each part of a block, and before the logits"},
      {"model.transformer.norm_epsilon", &C::norm_epsilon, "added to the variance or mean square",
       positive},
      {"model.transformer.positions", &C::positions,
       "a learned vector per position, or rotated queries and keys",
       Rule<C>{allowed_positions, When::set}},
      {"model.transformer.rope_theta", &C::rope_theta, "base of the frequencies of rope", positive,
       needs_rope},
      {"model.transformer.rope_scaling", &C::rope_scaling,
       "divides the low frequencies of rope, as in Llama 3; 1: none", positive, needs_rope},
      {"model.transformer.rope_original_context", &C::rope_original_context,
       "positions of the training whose frequencies rope_scaling changes", positive, needs_scaling},
      {"model.transformer.rope_low_turns", &C::rope_low_turns,
       "turns in the original context below which frequencies are low", positive, needs_scaling},
      {"model.transformer.rope_high_turns", &C::rope_high_turns,
       "turns in the original context above which frequencies stay", positive, needs_scaling},
      {"model.transformer.kv_heads", &C::kv_heads,
       "heads of keys and values, which heads of queries share; 0: as many as heads", not_negative,
       Rule<C>{allowed_kv_heads, When::set}},
      {"model.transformer.qk_norm", &C::qk_norm, "norm the queries and keys of each head"},
      {"model.transformer.feed_forward", &C::feed_forward,
       "fc2(activation(fc1)), or gated: fc2(activation(a) b) with a and b from fc1"},
      {"model.transformer.tied", &C::tied,
       "multiply with the embedding's table for the logits, in place of a matrix of their own"},
      {"model.transformer.experts", &C::experts,
       "experts of a block, each with an fc1 and an fc2; 0: one dense pair", not_negative,
       Rule<C>{allowed_experts, When::set}},
      {"model.transformer.top_k", &C::top_k, "experts that a position chooses, at most 8",
       needs_experts, Rule<C>{allowed_choices, When::always}},
      {"model.transformer.capacity_factor", &C::capacity_factor,
       "positions of a sequence that an expert takes, over an even load; later ones are dropped; "
       "0: no limit",
       not_negative, needs_experts},
      {"model.transformer.balance_loss", &C::balance_loss,
       "weight in the loss of the balance of the experts' load", not_negative, needs_experts,
       Rule<C>{balances_by_loss, "needs model.transformer.balance = \"loss\""}},
      {"model.transformer.router_z_loss", &C::router_z_loss,
       "weight in the loss of the squared log-sum-exp of the router's logits", not_negative,
       needs_experts},
      {"model.transformer.router", &C::router,
       "scores of the experts, of which the largest are chosen and are gates", needs_experts},
      {"model.transformer.renormalize", &C::renormalize,
       "divide the gates of a position by the sum of its chosen scores", needs_experts},
      {"model.transformer.shared_experts", &C::shared_experts,
       "experts that all positions pass beside the chosen ones, as one fc1 and one fc2",
       not_negative, needs_experts, Rule<C>{allowed_shared_experts, When::set}},
      {"model.transformer.balance", &C::balance,
       "what balances the experts' load: a term of the loss, or a bias that chooses",
       needs_experts},
      {"model.transformer.bias_rate", &C::bias_rate,
       "steps of the bias of each expert, against the sign of its load less the mean", positive,
       Rule<C>{balances_by_bias, "needs model.transformer.balance = \"bias\""}},
  };
  return fields;
}

ModelSpec transformer(const TransformerConfig& config, const MlpConfig& layers) {
  check(transformer_fields(), config);
  check_no_output_activation("transformer", layers);
  ModelSpec model{{}, 1, layers.initializer, layers.seed};
  model.input_positions = config.context;
  model.classes = config.vocabulary;
  model.targets = Targets::classes;

  const Size width = config.width;
  std::uint32_t number = 1;
  constexpr Activation none = Activation::identity;
  const auto dense = [&](std::string unit, Size input, Size in, Size out, std::string logical_in,
                         std::string logical_out, Activation activation, bool bias,
                         Size experts = 0, Size gates = 1) {
    return append_dense(
        model, {std::move(unit), input, in, out, std::move(logical_in), std::move(logical_out),
                activation, bias, number++, false, experts, gates});
  };
  const auto normal = [&](const std::string& unit, Size input) {
    return model.append(
        config.norm == NormKind::layer_norm
            ? layer_norm(unit + "/output", unit, input, width, "embed", config.norm_epsilon,
                         layers.bias)
            : rms_norm(unit + "/output", unit, input, width, "embed", config.norm_epsilon));
  };
  const bool rotates = config.positions == Positions::rope;
  const Size head_width = width / config.heads,
             key_heads = config.kv_heads > 0 ? config.kv_heads : config.heads;
  // Norms and rotates the queries, or the keys of keys and values, and returns them.
  const auto finished = [&](const std::string& unit, Size made, Size heads, Size of_head) {
    if (config.qk_norm)
      made = model.append(
          head_norm(unit + "/normed", unit, made, heads, of_head, head_width, config.norm_epsilon));
    if (rotates)
      made = model.append(
          rotary(unit + "/rotated", unit, made, heads, of_head, head_width, rope_of(config)));
    return made;
  };
  const auto attention = [&](const std::string& block, Size input) {
    const std::string name = block + "/attention";
    if (!rotates && !config.qk_norm && key_heads == config.heads)
      return model.append(causal_attention(
          name, block + "/qkv",
          dense(block + "/qkv", input, width, 3 * width, "embed", "heads", none, layers.bias),
          config.heads, head_width));
    const std::string q = block + "/q", kv = block + "/kv";
    const Size queries = finished(
        q, dense(q, input, width, width, "embed", "heads", none, layers.bias), config.heads, 1);
    const auto first = model.layers.size();
    const Size keys = finished(
        kv,
        dense(kv, input, width, 2 * key_heads * head_width, "embed", "heads", none, layers.bias),
        key_heads, 2);
    for (std::size_t l = first; l < model.layers.size(); ++l)
      model.layers[l].groups = {"key heads", "model.transformer.kv_heads", key_heads, true};
    return model.append(grouped_attention(name, kv, queries, keys, config.heads, key_heads,
                                          head_width, config.context));
  };
  // Appends fc1 and fc2 of a block, of all its experts, or of the shared ones.
  const auto feed_forward = [&](const std::string& at, Size input, Size inner_width, Size experts) {
    const bool is_gated = config.feed_forward == FeedForward::gated;
    Size hidden =
        dense(at + "/fc1", input, width, inner_width, "embed", "mlp",
              is_gated ? none : layers.activation, layers.bias, experts, is_gated ? 2 : 1);
    if (is_gated)
      hidden = model.append(gated(at + "/fc1/gated", at + "/fc1", hidden,
                                  model.layers[hidden].out() / 2, layers.activation, experts));
    return dense(at + "/fc2", hidden, inner_width, width, "mlp", "embed", none, layers.bias,
                 experts);
  };
  Size x = model.append(embedding("embedding/output", "embedding", config.vocabulary,
                                  config.context, width, 0, !rotates));
  for (Size b = 1; b <= config.blocks; ++b) {
    const std::string block = fmt::format("block{}", b);
    const Size heads = attention(block, normal(block + "/ln1", x));
    const Size mixed =
        dense(block + "/proj", heads, width, width, "heads", "embed", none, layers.bias);
    x = model.append(add(block + "/attended", block, x, mixed, width));
    const Size normed = normal(block + "/ln2", x);
    if (config.shared_experts > 0) {
      const std::string shared = block + "/shared";
      const Size made = feed_forward(shared, normed, config.shared_experts * config.inner_width, 0);
      x = model.append(add(shared + "/output", shared, x, made, width));
    }
    Size input = normed, gates = -1;
    const Routing routing = config.experts > 0 ? routing_of(config) : Routing{};
    if (config.experts > 0) {
      const std::string router = block + "/router";
      gates = model.append(
          route(router + "/gates", router,
                dense(router, input, width, config.experts, "embed", "", none, false), routing));
      input = model.append(
          dispatch(router + "/slots", router, input, gates, width, config.context, routing));
    }
    Size change = feed_forward(block, input, config.inner_width, config.experts);
    if (config.experts > 0)
      change = model.append(combine(block + "/fc2/combined", block + "/fc2", change, gates, width,
                                    config.context, routing));
    x = model.append(add(block + "/output", block, x, change, width));
  }
  x = normal("ln", x);
  if (config.tied)
    model.append(tied_linear("logits/output", "logits", x, 0, config.vocabulary, width));
  else
    dense("logits", x, width, config.vocabulary, "embed", "vocab", none, false);
  return model;
}

}  // namespace tessera
