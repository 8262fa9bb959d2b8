// SPDX-License-Identifier: Apache-2.0
// Placements that follow from the expressions of all kinds of layers, written out.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/config/to_plan_input.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/plan/layout/claims.hpp>

namespace tessera {
namespace {

/// Returns a layer of every kind in the models that a configuration can have, by name of the kind.
std::map<std::string, LayerSpec> kinds() {
  std::map<std::string, LayerSpec> all;
  const auto add = [&](const LayerSpec& layer) {
    all.emplace(std::string(layer.kind->name), layer);
  };
  for (std::size_t kind = 0; kind < names_of<ModelKind>.size(); ++kind)
    for (const Size experts : {0, 3}) {
      ModelConfig config;
      config.kind = static_cast<ModelKind>(kind);
      config.mlp.activation = Activation::tanh;
      if (config.kind == ModelKind::mlp) config.mlp.widths = {2, 3, 4};
      for (const LayerSpec& layer : make_model(config).layers) add(layer);
      if (config.kind != ModelKind::transformer) continue;
      TransformerConfig& llama = config.transformer;
      llama.experts = experts;
      for (const LayerSpec& layer : make_model(config).layers) add(layer);
      llama.norm = NormKind::rms_norm, llama.positions = Positions::rope, llama.qk_norm = true;
      llama.feed_forward = FeedForward::gated, llama.tied = true;
      for (const LayerSpec& layer : make_model(config).layers) add(layer);
    }
  // A plan adds keys and values where `context` splits positions.
  LayerSpec& attention = all.at("attention");
  add(keys_values(attention));
  attention.inputs.push_back(0);
  return all;
}

std::string text_of(Placement placement) {
  if (placement.is_partial()) return "terms";
  if (placement.is_replicate()) return "whole";
  return placement.is_shard(0) ? "rows" : placement.is_shard(1) ? "columns" : "?";
}

std::string text_of(const std::vector<Placement>& tensors) {
  std::string text;
  for (const Placement& placement : tensors) text += text_of(placement) + " ";
  return text;
}

/// Returns "inputs [parameters] -> output | output gradient -> input gradients [those of
/// parameters]".
std::string text_of(const Layout& along) {
  const auto with = [](const std::vector<Placement>& parameters) {
    return parameters.empty() ? "" : "[ " + text_of(parameters) + "] ";
  };
  std::string text = text_of(along.inputs) + with(along.parameters) + "-> " +
                     text_of(along.output) + " | " + text_of(along.output_gradient) + " -> " +
                     text_of(along.input_gradients) + with(along.parameter_gradients);
  text.pop_back();
  return text;
}

using Expected = std::map<std::string, std::vector<std::string>>;

/// Checks the choices of each kind, in order.
template <class F>
void expect_placements(const Expected& expected, const F& choices_of_kind) {
  Expected found;
  for (const auto& [name, layer] : kinds()) {
    std::vector<std::string>& texts = found[name];
    for (const Layout& along : choices_of_kind(layer)) texts.push_back(text_of(along));
  }
  EXPECT_EQ(found, expected);
}

// The first choice, whole tensors, is left out. linear is column- and row-parallel (Shoeybi et al.
// 2019, "Megatron-LM", section 3), embedding vocabulary-parallel; rows are those of sequence
// parallelism (Korthikanti et al. 2022).
TEST(Claims, AlongModel) {
  expect_placements(
      {{"linear",
        {"whole [ columns ] -> columns | columns -> terms [ columns ]",
         "columns [ rows ] -> terms | whole -> columns [ rows ]"}},
       {"pointwise",
        {"columns [ rows ] -> columns | columns -> columns [ rows ]",
         "rows [ whole ] -> rows | rows -> rows [ terms ]"}},
       {"jet_activation", {"columns [ rows ] -> columns | columns -> columns [ rows ]"}},
       {"layer_norm", {"rows [ whole whole ] -> rows | rows -> rows [ terms terms ]"}},
       {"rms_norm", {"rows [ whole ] -> rows | rows -> rows [ terms ]"}},
       {"head_norm", {"columns [ whole ] -> columns | columns -> columns [ terms ]"}},
       {"rope", {"columns -> columns | columns -> columns"}},
       {"gated", {"columns -> columns | columns -> columns", "rows -> rows | rows -> rows"}},
       {"tied_linear",
        {"whole -> columns | columns -> terms", "columns -> terms | whole -> columns"}},
       {"add",
        {"columns columns -> columns | columns -> columns columns",
         "rows rows -> rows | rows -> rows rows"}},
       {"embedding", {"whole [ rows whole ] -> terms | whole -> whole [ rows whole ]"}},
       {"attention", {"columns columns -> columns | columns -> columns columns"}},
       {"keys_values", {"columns -> columns | columns -> columns"}},
       {"fourier", {"whole -> columns | columns -> terms"}},
       {"mode_product", {"columns [ rows ] -> columns | columns -> columns [ rows ]"}},
       {"inverse_fourier", {"columns -> terms | whole -> columns"}},
       {"dispatch", {"whole whole -> columns | columns -> terms whole"}},
       {"grouped_linear", {"columns [ rows ] -> columns | columns -> columns [ rows ]"}},
       {"combine", {"columns whole -> terms | whole -> columns terms"}},
       {"route", {}},
       {"reparameterize", {}}},
      [](const LayerSpec& layer) {
        std::vector<Layout> choices = model_choices(layer);
        EXPECT_EQ(choices.front(), placements_of(layer, ""));
        choices.erase(choices.begin());
        return choices;
      });
}

/// Returns the placements along `context` without parameters, which every rank stores whole, with
/// gradients that are sums over `context`. None if the kind has no positions.
std::vector<Layout> along_context(const LayerSpec& layer, ContextAttention attention) {
  const Expression& expression = layer.kind->expression;
  if (!has_context(expression)) return {};
  Layout along = placements_of(layer, context_split(expression, attention));
  along.parameters.clear(), along.parameter_gradients.clear();
  return {along};
}

TEST(Claims, AlongContext) {
  const std::string rows = "rows -> rows | rows -> rows", heads =
                                                              "columns columns -> columns | "
                                                              "columns -> columns columns";
  Expected expected{{"linear", {rows}},
                    {"pointwise", {rows}},
                    {"jet_activation", {}},
                    {"layer_norm", {rows}},
                    {"rms_norm", {rows}},
                    {"head_norm", {rows}},
                    {"rope", {rows}},
                    {"gated", {rows}},
                    {"tied_linear", {rows}},
                    {"add", {"rows rows -> rows | rows -> rows rows"}},
                    {"embedding", {"rows -> rows | rows -> whole"}},
                    {"attention", {"rows whole -> rows | rows -> rows terms"}},
                    {"keys_values", {rows}},
                    {"fourier", {"rows -> terms | whole -> rows"}},
                    {"mode_product", {"columns -> columns | columns -> columns"}},
                    {"inverse_fourier", {"whole -> rows | rows -> terms"}},
                    {"dispatch", {"rows whole -> terms | whole -> rows whole"}},
                    {"grouped_linear", {rows}},
                    {"combine", {"whole whole -> rows | rows -> terms rows"}},
                    {"route", {"whole -> whole | whole -> whole"}},
                    {"reparameterize", {}}};
  const auto check = [&](ContextAttention attention) {
    SCOPED_TRACE(name_of(attention));
    expect_placements(expected,
                      [&](const LayerSpec& layer) { return along_context(layer, attention); });
  };
  check(ContextAttention::gather);
  expected["attention"] = {"rows rows -> rows | rows -> rows rows"};
  check(ContextAttention::ring);
  expected["attention"] = {heads};
  check(ContextAttention::all_to_all);
}

// Axes that split samples: all activations are rows, and gradients of parameters are sums.
TEST(Claims, AlongTheBatch) {
  for (const auto& [name, layer] : kinds()) {
    SCOPED_TRACE(name);
    const Layout along = placements_of(layer, "s");
    EXPECT_EQ(text_of(along.output) + text_of(along.output_gradient), "rowsrows");
    const auto expect_all = [](const std::vector<Placement>& tensors, Placement placement) {
      EXPECT_EQ(tensors, std::vector<Placement>(tensors.size(), placement));
    };
    expect_all(along.inputs, by_rows);
    expect_all(along.parameters, {});
    expect_all(along.parameter_gradients, as_terms);
    for (std::size_t i = 0; i < layer.inputs.size(); ++i)
      EXPECT_EQ(
          along.input_gradients[i],
          layer.kind->expression.inputs[i].gradient_indices().empty() ? Placement() : by_rows);
  }
}

// `expert` splits the columns of slots, and the kernels, as `model` does.
TEST(Claims, AlongExperts) {
  const LayerSpec layer = kinds().at("grouped_linear");
  EXPECT_EQ(placements_of(layer, "e"), model_choices(layer).at(1));
}

}  // namespace
}  // namespace tessera
