// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/toml_value.hpp>
#include <tessera/checkpoint/huggingface.hpp>
#include <tessera/config/settings.hpp>

namespace tessera::huggingface {

using Json = nlohmann::json;

/// How several parts make up the columns of a parameter.
enum class Columns : std::uint8_t {
  plain,
  pairs,          ///< a column of the first array, then one of the second, and so on
  heads,          ///< a head's columns of the first array, then of the second
  stacked_heads,  ///< the same for q, k and v, which stand one after another in one array
};

/// The arrays of a unit's parameters, or of one parameter.
struct ParameterRow {
  std::string_view ours;  ///< without the number of the block
  /// Names of one array or two, without that of the block, ".weight" and ".bias". # stands for the
  /// number of an expert.
  std::string_view theirs;
  Columns columns = Columns::plain;
  bool transposes = true;  ///< kernels are (out, in) there
};

/// A key of config.json and our key after "model."; without one, other values than the standard are
/// rejected.
struct KeyRow {
  std::string_view theirs, ours;
  std::string_view standard{};  ///< JSON: the value where theirs is missing; "": none
};

/// A class of models in transformers.
struct ModelClass {
  std::string_view name, type;
  std::string_view base, block;  ///< how names of arrays begin; before the number of a block
  std::span<const ParameterRow> parameters;
  std::span<const KeyRow> keys;
  std::string_view settings;  ///< JSON: those that all its models have, after "model."
};

namespace {

constexpr std::array<ParameterRow, 15> llama_parameters{{
    {"embedding", "model.embed_tokens"},
    {"ln", "model.norm"},
    {"logits", "lm_head"},
    {"block/ln1", "input_layernorm"},
    {"block/q/scale", "self_attn.q_norm"},
    {"block/q", "self_attn.q_proj"},
    {"block/kv/scale", "self_attn.k_norm"},
    {"block/kv", "self_attn.k_proj self_attn.v_proj", Columns::heads},
    {"block/proj", "self_attn.o_proj"},
    {"block/ln2", "post_attention_layernorm"},
    {"block/fc1", "mlp.gate_proj mlp.up_proj", Columns::pairs},
    {"block/fc2", "mlp.down_proj"},
    {"block/router", "block_sparse_moe.gate"},
    {"block/experts/fc1", "block_sparse_moe.experts.#.w1 block_sparse_moe.experts.#.w3",
     Columns::pairs},
    {"block/experts/fc2", "block_sparse_moe.experts.#.w2"},
}};
constexpr std::array<ParameterRow, 10> gpt2_parameters{{
    {"embedding/table", "transformer.wte"},
    {"embedding/position", "transformer.wpe"},
    {"ln", "transformer.ln_f"},
    {"logits", "lm_head"},
    {"block/ln1", "ln_1"},
    {"block/qkv", "attn.c_attn", Columns::stacked_heads, false},
    {"block/proj", "attn.c_proj", Columns::plain, false},
    {"block/ln2", "ln_2"},
    {"block/fc1", "mlp.c_fc", Columns::plain, false},
    {"block/fc2", "mlp.c_proj", Columns::plain, false},
}};

constexpr std::array<KeyRow, 21> llama_keys{{
    {"vocab_size", "transformer.vocabulary"},
    {"max_position_embeddings", "transformer.context"},
    {"hidden_size", "transformer.width"},
    {"num_attention_heads", "transformer.heads"},
    {"num_key_value_heads", "transformer.kv_heads"},
    {"num_hidden_layers", "transformer.blocks"},
    {"intermediate_size", "transformer.inner_width"},
    {"hidden_act", "activation", R"("silu")"},
    {"rms_norm_eps", "transformer.norm_epsilon", "1e-6"},
    {"attention_bias", "bias", "false"},
    {"mlp_bias", "bias", "false"},
    {"tie_word_embeddings", "transformer.tied", "false"},
    {"num_local_experts", "transformer.experts", "0"},
    {"num_experts_per_tok", "transformer.top_k", "2"},
    {"rope_theta", "transformer.rope_theta", "10000"},
    {"factor", "transformer.rope_scaling", "1"},
    {"original_max_position_embeddings", "transformer.rope_original_context", "8192"},
    {"low_freq_factor", "transformer.rope_low_turns", "1"},
    {"high_freq_factor", "transformer.rope_high_turns", "4"},
    {"rope_type", "", R"("default")"},  // flat() removes llama3
    {"partial_rotary_factor", "", "1"},
}};
constexpr std::array<KeyRow, 12> gpt2_keys{{
    {"vocab_size", "transformer.vocabulary"},
    {"n_positions", "transformer.context"},
    {"n_embd", "transformer.width"},
    {"n_head", "transformer.heads"},
    {"n_head", "transformer.kv_heads"},
    {"n_layer", "transformer.blocks"},
    {"n_inner", "transformer.inner_width"},
    {"activation_function", "activation", R"("gelu")"},
    {"layer_norm_epsilon", "transformer.norm_epsilon", "1e-5"},
    {"tie_word_embeddings", "transformer.tied", "true"},
    {"scale_attn_weights", "", "true"},
    {"scale_attn_by_inverse_layer_idx", "", "false"},
}};

constexpr std::string_view llama_settings = R"({"kind": "transformer",
  "transformer.norm": "rms_norm", "transformer.positions": "rope",
  "transformer.feed_forward": "gated", "transformer.qk_norm": false, "transformer.experts": 0})";
constexpr std::string_view qwen3_settings = R"({"kind": "transformer", "bias": false,
  "transformer.norm": "rms_norm", "transformer.positions": "rope",
  "transformer.feed_forward": "gated", "transformer.qk_norm": true, "transformer.experts": 0})";
constexpr std::string_view mixtral_settings = R"({"kind": "transformer", "bias": false,
  "transformer.norm": "rms_norm", "transformer.positions": "rope",
  "transformer.feed_forward": "gated", "transformer.qk_norm": false,
  "transformer.capacity_factor": 0, "transformer.router": "softmax",
  "transformer.renormalize": true, "transformer.shared_experts": 0,
  "transformer.balance": "loss"})";
constexpr std::string_view gpt2_settings = R"({"kind": "transformer", "bias": true,
  "transformer.norm": "layer_norm", "transformer.positions": "learned",
  "transformer.feed_forward": "plain", "transformer.qk_norm": false, "transformer.experts": 0})";

constexpr std::array<ModelClass, 5> classes{{
    {"LlamaForCausalLM", "llama", "model.", "model.layers.", llama_parameters, llama_keys,
     llama_settings},
    {"MistralForCausalLM", "mistral", "model.", "model.layers.", llama_parameters, llama_keys,
     llama_settings},
    {"Qwen3ForCausalLM", "qwen3", "model.", "model.layers.", llama_parameters, llama_keys,
     qwen3_settings},
    {"MixtralForCausalLM", "mixtral", "model.", "model.layers.", llama_parameters, llama_keys,
     mixtral_settings},
    {"GPT2LMHeadModel", "gpt2", "transformer.", "transformer.h.", gpt2_parameters, gpt2_keys,
     gpt2_settings},
}};

/// Returns all settings that begin with "model.", without that, also those that a configuration of
/// an older version lacks.
Json model_settings(const Json& config) {
  const Json& given = config.at("model");
  Json ours;
  for (const Setting& setting : settings())
    if (setting.key.starts_with("model.")) {
      const std::string key = setting.key.substr(std::string_view("model.").size());
      ours[key] = given.contains(key) ? given.at(key) : setting.standard;
    }
  if (ours["transformer.kv_heads"] == 0) ours["transformer.kv_heads"] = ours["transformer.heads"];
  return ours;
}

constexpr std::array<const char*, 2> activation_keys{"hidden_act", "activation_function"};

/// Returns a config.json without nested values, with our name of gelu, and with the values that are
/// left out because they follow from others.
Json flat(Json theirs) {
  for (const char* key : {"rope_scaling", "rope_parameters"})  // of older and newer versions
    if (const Json rope = theirs[key]; rope.is_object()) theirs.update(rope);
  if (theirs.contains("type")) theirs["rope_type"] = theirs["type"];
  if (theirs["rope_type"] == "llama3") theirs.erase("rope_type");
  for (const char* key : activation_keys) {
    if (theirs[key] == "gelu") theirs[key] = "gelu with erf";
    if (theirs[key] == "gelu_new" || theirs[key] == "gelu_pytorch_tanh") theirs[key] = "gelu";
  }
  if (theirs["num_key_value_heads"].is_null())
    theirs["num_key_value_heads"] = theirs["num_attention_heads"];
  if (theirs["n_inner"].is_null() && theirs["n_embd"].is_number_integer())
    theirs["n_inner"] = 4 * theirs["n_embd"].get<Size>();
  const Json window = theirs["sliding_window"];
  if (window.is_number() && theirs["use_sliding_window"] != false &&
      window < theirs["max_position_embeddings"])
    theirs["max_position_embeddings"] = window;
  return theirs;
}

Json standard_of(const KeyRow& row) {
  return row.standard.empty() ? Json() : Json::parse(row.standard);
}

/// Returns the config.json of a class for model_settings().
Json config_json(const ModelClass& model, const Json& ours) {
  Json theirs{{"architectures", {model.name}}, {"model_type", model.type}};
  for (const KeyRow& row : model.keys)
    theirs[row.theirs] = ours.contains(row.ours) ? ours[row.ours] : standard_of(row);
  for (const char* key : activation_keys)
    if (theirs.contains(key) && theirs[key] == "gelu") theirs[key] = "gelu_new";
  if (!theirs.contains("rope_type")) return theirs;
  theirs["head_dim"] =
      ours["transformer.width"].get<Size>() / ours["transformer.heads"].get<Size>();
  Json rope{{"rope_type", "llama3"}};
  for (const char* key :
       {"factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"}) {
    rope[key] = theirs[key];
    theirs.erase(key);
  }
  theirs.erase("rope_type");
  if (rope["factor"] != 1) theirs["rope_scaling"] = rope;
  return theirs;
}

/// Returns the size that a config.json has for one of our keys.
Size size_in(const ModelClass& model, const Json& theirs, std::string_view ours) {
  Size size = 0;
  for (const KeyRow& row : model.keys)
    if (row.ours == ours) size = theirs.at(row.theirs);
  return size;
}

}  // namespace

const ModelClass& class_of(const Json& theirs, const std::string& path) {
  const Json names = theirs.value("architectures", Json());
  std::vector<std::string_view> known;
  for (const ModelClass& model : classes) {
    if (names.is_array() && names.size() == 1 && names[0] == model.name) return model;
    known.push_back(model.name);
  }
  throw Error(ExitCode::usage, "{}: architectures = {}: must be one of {}", path,
              excerpt(names.dump()), join(known));
}

const ModelClass& class_for(const Json& config, Json& theirs) {
  const Json ours = model_settings(config);
  std::vector<std::vector<std::string>> misses;
  for (const ModelClass& model : classes)
    misses.push_back(differences(model, config_json(model, ours), config));
  const auto fewest =
      std::ranges::min_element(misses, {}, [](const auto& phrases) { return phrases.size(); });
  const ModelClass& nearest = classes[fewest - misses.begin()];
  if (!fewest->empty())
    throw ConfigError("--names", "huggingface", "{} needs {}", nearest.name, join(*fewest, "; "));
  theirs = config_json(nearest, ours);
  return nearest;
}

std::vector<std::string> differences(const ModelClass& model, const Json& config_json,
                                     const Json& config) {
  const Json theirs = flat(config_json), ours = model_settings(config);
  std::vector<std::string> all;
  const auto add = [&](const std::string& phrase) {
    if (std::ranges::find(all, phrase) == all.end()) all.push_back(phrase);
  };
  const auto need = [&](std::string_view key, const Json& value, std::string_view bound = "") {
    add(fmt::format("model.{} = {}{}, not {}", key, bound, excerpt(to_toml(value)),
                    to_toml(ours[key])));
  };
  const Json settings = Json::parse(model.settings);
  for (const auto& [key, value] : settings.items())
    if (ours.contains(key) && ours[key] != value) need(key, value);
  for (const KeyRow& row : model.keys) {
    const Json standard = standard_of(row), given = theirs.value(row.theirs, Json());
    const Json& value = given.is_null() ? standard : given;
    if (value.is_null())
      add(fmt::format("{} in config.json", row.theirs));
    else if (row.ours.empty() && value != standard)
      add(fmt::format("{} = {} in config.json, not {}", row.theirs, row.standard,
                      excerpt(value.dump())));
    if (value.is_null() || !ours.contains(row.ours)) continue;
    const bool is_limit = row.ours == "transformer.context" && value.is_number();
    if (is_limit ? value < ours[row.ours] : value != ours[row.ours])
      need(row.ours, value, is_limit ? "at most " : "");
  }
  const Json head = theirs.value("head_dim", Json());
  const Size width = ours["transformer.width"], heads = ours["transformer.heads"];
  if (!head.is_null() && head != width / heads)
    add(fmt::format("head_dim = {} in config.json, not {}", width / heads, head.dump()));
  return all;
}

ExportedParameter exported_parameter(const ModelClass& model, const Json& theirs,
                                     const std::string& path, const Shape& shape) {
  const std::size_t last = path.rfind('/');
  const std::string parameter = path.substr(last + 1);
  const bool is_matrix = shape.size() > 1, has_experts = shape.size() > 2;
  std::string unit = path.substr(0, last), prefix;
  if (const std::string_view block = "block"; unit.starts_with(block)) {
    const std::size_t end = unit.find('/');
    prefix = fmt::format("{}{}.", model.block, std::stoi(unit.substr(block.size())) - 1);
    unit = fmt::format("block{}{}", has_experts ? "/experts" : "", unit.substr(end));
  }
  const auto row = std::ranges::find_if(model.parameters, [&](const ParameterRow& one) {
    return one.ours == unit || one.ours == unit + "/" + parameter;
  });
  if (row == model.parameters.end())
    throw Error(ExitCode::usage, "{} has no parameter like {}", model.name, path);
  const std::vector<std::string> names = split_text(row->theirs, ' ');
  ExportedParameter there;
  for (Size expert = 0; expert < (has_experts ? shape[0] : 1); ++expert)
    for (std::string name : names) {
      if (const std::size_t place = name.find('#'); place != name.npos)
        name.replace(place, 1, std::to_string(expert));
      there.names.push_back(prefix + name + (parameter == "bias" ? ".bias" : ".weight"));
    }
  const bool is_stacked = row->columns == Columns::stacked_heads;
  there.layout.transposed = row->transposes && parameter == "kernel";
  const bool of_heads = is_stacked || row->columns == Columns::heads;
  there.layout.group = of_heads ? size_in(model, theirs, "transformer.width") /
                                      size_in(model, theirs, "transformer.heads")
                                : 1;
  there.layout.parts = is_stacked ? 3 : std::ssize(names);
  there.layout.stacked = is_stacked;
  there.layout.by_expert = has_experts;
  there.shape = {shape.back() / std::ssize(names)};
  if (is_matrix) there.shape.insert(there.shape.begin(), shape[shape.size() - 2]);
  if (there.layout.transposed) std::swap(there.shape[0], there.shape[1]);
  if (parameter == "position") there.shape[0] = size_in(model, theirs, "transformer.context");
  return there;
}

std::string full_name(const ModelClass& model, const std::string& name) {
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  if (ends(".attn.bias") || ends(".attn.masked_bias") || ends(".rotary_emb.inv_freq")) return "";
  const bool is_full = name.starts_with(model.base) || name.starts_with("lm_head.");
  return is_full ? name : std::string(model.base) + name;
}

}  // namespace tessera::huggingface
