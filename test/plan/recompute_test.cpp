// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::tutorial;

PlanInput nine_layers(Size units, Activation activation = Activation::gelu) {
  PlanInput input = tutorial({{"data", 1}});
  input.model = mlp({.widths = std::vector<Size>(10, 16), .activation = activation});
  input.activation_checkpointing.units = units;
  return input;
}

// A layer with gelu saves its output, which the next layer reads, and the input of gelu.
TEST(PlanRecomputation, KeepsInputsOfSegmentsAndTheLastSegmentWhole) {
  const auto tensors = [](Size units) {
    return static_cast<double>(make_plan(nine_layers(units)).memory(0).activations) / (32 * 16 * 4);
  };
  EXPECT_NEAR(tensors(0), 2 * 8 + 2, 0.5);
  EXPECT_LT(tensors(1), 8 + 5);
  EXPECT_LT(tensors(3), 2 + 2 * 3 + 3) << "segments of three of nine layers";
  EXPECT_LT(tensors(3), tensors(1));
  EXPECT_LT(tensors(3), tensors(6));
}

// All segments but the last one repeat their forward pass. The last layer of a segment is repeated
// only if its backward pass needs the input of the activation, as that of gelu does.
TEST(PlanRecomputation, CostsAForwardPassOfAllButTheLastSegment) {
  const Size layer = 2 * 32 * 16 * 16;
  EXPECT_EQ(make_plan(nine_layers(0)).recomputed, 0);
  EXPECT_EQ(make_plan(nine_layers(1)).recomputed, 8 * layer);
  EXPECT_EQ(make_plan(nine_layers(3)).recomputed, 6 * layer);
  EXPECT_EQ(make_plan(nine_layers(9)).recomputed, 0);
  EXPECT_EQ(make_plan(nine_layers(3, Activation::tanh)).recomputed, 4 * layer)
      << "tanh needs only its output, and the outputs of segments are saved";
  EXPECT_EQ(make_plan(nine_layers(1)).flops.total(), make_plan(nine_layers(0)).flops.total());
}

// The first segment is gathered for its recomputation and stays gathered for its backward pass. The
// second segment is not recomputed.
TEST(PlanRecomputation, GathersParametersToRecompute) {
  PlanInput input = tutorial({{"fsdp", 2}});
  input.strategy = Strategy::fsdp;
  input.model = mlp({.widths = {4, 8, 8, 8, 2}, .activation = Activation::gelu});
  input.prefetch = false;
  const auto gathers = [&](const Recomputation& recomputation) {
    input.activation_checkpointing = recomputation;
    const Plan plan = make_plan(input);
    std::string text;
    for (const ListedAction& listed : plan.stages.front().actions) {
      if (const auto* gather = listed.as<Gather>()) text += fmt::format("g{}", gather->bucket + 1);
      if (const auto* reduce = listed.as<ReduceScatter>())
        text += fmt::format("r{}", reduce->bucket + 1);
    }
    return text;
  };
  EXPECT_EQ(gathers({.units = 2}), "g1g2g3g4r4g3r3g1g2r2g1r1");
  // Activations, which have biases, come before the whole backward pass of the next layer.
  EXPECT_EQ(gathers({.what = Recomputed::cheap}), "g1g2g3g4r4g2g3r3g1g2r2g1r1");
}

/// Returns the first layer of a step on rank 0 whose parameters are not gathered, or were
/// overwritten by those of another unit; "" if there is none.
std::string layer_without_parameters(const Plan& plan) {
  const StagePlan& stage = plan.stages.front();
  const StatePlan state = plan.state(0);
  const auto share_memory = [&](Size a, Size b) {
    const BucketPlace &one = state.buckets[a], &other = state.buckets[b];
    return intersection({one.gathered_begin, one.whole.count},
                        {other.gathered_begin, other.whole.count})
               .count > 0;
  };
  std::set<Size> gathered;
  for (const ListedAction& listed : stage.actions) {
    if (const auto* gather = listed.as<Gather>()) {
      std::erase_if(gathered, [&](Size other) { return share_memory(gather->bucket, other); });
      gathered.insert(gather->bucket);
    }
    if (const Compute* const compute = compute_of(listed.action))
      for (const ParameterPlan& parameter : stage.parameters.parameters)
        if (parameter.layer == compute->layer && !gathered.contains(parameter.bucket))
          return plan.input.model.layers[compute->layer].name;
  }
  return "";
}

TEST(PlanRecomputation, FindsTheParametersOfEveryLayerGathered) {
  const MlpConfig gelu{.activation = Activation::gelu},
      silu{.activation = Activation::silu, .bias = false};
  const TransformerConfig sizes{
      .vocabulary = 5, .context = 4, .width = 8, .heads = 2, .blocks = 2, .inner_width = 6};
  TransformerConfig llama = sizes;
  llama.norm = NormKind::rms_norm, llama.feed_forward = FeedForward::gated, llama.tied = true;
  PlanInput input = tutorial({{"fsdp", 2}});
  input.strategy = Strategy::fsdp;
  input.batch_size = input.samples = 8;
  for (const ModelSpec& model :
       {transformer(sizes, gelu), transformer(llama, silu),
        mlp({.widths = {4, 8, 8, 8, 2}, .activation = Activation::gelu}),
        fno({.grid = 8, .modes = 2, .width = 3, .layers = 2, .projection = 5}, gelu)})
    for (const Recomputation& what : std::vector<Recomputation>{{},
                                                                {.units = 1},
                                                                {.units = 2},
                                                                {.what = Recomputed::block},
                                                                {.what = Recomputed::cheap}})
      for (int options = 0; options < 32; ++options) {
        input.model = model;
        input.loss = model.targets == Targets::classes ? LossKind::cross_entropy : LossKind::mse;
        input.activation_checkpointing = what;
        input.prefetch = options % 2 == 0;
        input.overlap = options / 2 % 2 == 0;
        input.keep_last_unit = options / 4 % 2 == 0;
        input.microbatches = 1 + options / 8 % 2;
        input.fsdp_unit = static_cast<FsdpUnit>(options / 16);
        EXPECT_EQ(layer_without_parameters(make_plan(input)), "")
            << model.layers.back().name << ", " << name_of(what.what) << " " << what.units
            << ", options " << options;
      }
}

enum class Style { gpt2, llama };

TransformerConfig sized(Size blocks) {
  return {.vocabulary = 64,
          .context = 16,
          .width = 32,
          .heads = 4,
          .blocks = blocks,
          .inner_width = 96};
}

PlanInput transformer_of(Style style, Size blocks, Recomputed what,
                         std::vector<Axis> axes = {{"data", 1}}) {
  TransformerConfig config = sized(blocks);
  MlpConfig layers{.activation = Activation::gelu};
  if (style == Style::llama) {
    config.norm = NormKind::rms_norm;
    config.positions = Positions::rope;
    config.kv_heads = 2;
    config.feed_forward = FeedForward::gated;
    layers = {.activation = Activation::silu, .bias = false};
  }
  PlanInput input = tutorial(std::move(axes));
  input.model = transformer(config, layers);
  input.loss = LossKind::cross_entropy;
  input.activation_checkpointing.what = what;
  return input;
}

// The README's formulas with width 32, inner width 96, 4 heads and 2 of keys.
TEST(PlanRecomputation, KeepsTheElementsOfTheFormulas) {
  constexpr Size h = 32, f = 96, a = 4;
  struct Row {
    Style style;
    Recomputed what;
    Size elements;
  };
  for (const Row& row : {Row{Style::gpt2, Recomputed::units, 8 * h + 2 * f + 2 * a + 4},
                         {Style::gpt2, Recomputed::cheap, 6 * h + f + 2 * a},
                         {Style::gpt2, Recomputed::attention, 7 * h + 2 * f + 4},
                         {Style::gpt2, Recomputed::block, h},
                         {Style::llama, Recomputed::units, 7 * h + 3 * f + 2 * a + 2},
                         {Style::llama, Recomputed::cheap, 5 * h + 2 * f + 2 * a},
                         {Style::llama, Recomputed::attention, 6 * h + 3 * f + 2},
                         {Style::llama, Recomputed::block, h}}) {
    const auto bytes = [&](Size blocks) {
      return make_plan(transformer_of(row.style, blocks, row.what)).memory(0).activations;
    };
    EXPECT_EQ(bytes(5) - bytes(4), 32 * 16 * 4 * row.elements)
        << name_of(row.what) << (row.style == Style::llama ? ", llama" : ", gpt2");
  }
}

/// Returns "2 layer_norm, 1 pointwise" of a plan.
std::string recomputed_layers(const PlanInput& input) {
  std::string text;
  for (const auto& [kind, layers] : make_plan(input).recomputed_layers)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", layers, kind);
  return text;
}

// Of two blocks. Rotations overwrite products, which the backward pass does not read. The last
// activation of a model, which the loss reads, is kept.
TEST(PlanRecomputation, ChoosesLayersByTheirKind) {
  const auto cheap = [](const ModelSpec& model) {
    PlanInput input = tutorial();
    input.model = model;
    input.activation_checkpointing.what = Recomputed::cheap;
    return recomputed_layers(input);
  };
  const MlpConfig gelu{.activation = Activation::gelu};
  EXPECT_EQ(recomputed_layers(transformer_of(Style::gpt2, 2, Recomputed::cheap)),
            "4 layer_norm, 2 pointwise");
  EXPECT_EQ(recomputed_layers(transformer_of(Style::llama, 2, Recomputed::cheap)),
            "2 gated, 4 rms_norm");
  EXPECT_EQ(recomputed_layers(transformer_of(Style::gpt2, 2, Recomputed::attention)),
            "2 attention");
  EXPECT_EQ(cheap(residual_mlp({5, 8, 16, 2, 3}, gelu)), "2 layer_norm, 2 pointwise");
  EXPECT_EQ(cheap(mlp({.widths = {3, 5, 7, 2}, .activation = Activation::gelu})), "1 pointwise");
  EXPECT_EQ(cheap(fno({.grid = 8, .modes = 2, .width = 3, .layers = 3, .projection = 5}, gelu)),
            "2 pointwise");
  EXPECT_EQ(cheap(vae({.input_width = 4, .hidden = {5}, .latent = 2}, {})), "1 reparameterize");
  EXPECT_EQ(cheap(pinn({.width = 5, .layers = 2}, {.activation = Activation::tanh})),
            "1 jet_activation");
  TransformerConfig config = sized(2);
  config.positions = Positions::rope;
  config.qk_norm = true;
  config.experts = 4;
  config.feed_forward = FeedForward::gated;
  EXPECT_EQ(cheap(transformer(config, gelu)),
            "2 gated, 4 head_norm, 4 layer_norm, 4 rope, 2 route");
  EXPECT_EQ(make_plan(transformer_of(Style::gpt2, 2, Recomputed::cheap)).recomputed, 0);
}

// The parts of a ring are one layer, and blocks do not begin with the embedding.
TEST(PlanRecomputation, CountsTheFlopsOfKindsAndBlocks) {
  for (const ContextAttention attention : {ContextAttention::gather, ContextAttention::ring})
    for (const Recomputed what : {Recomputed::attention, Recomputed::block}) {
      PlanInput input = transformer_of(Style::gpt2, 3, what, {{"context", 4}});
      input.context_attention = attention;
      const Plan plan = make_plan(input);
      double expected = 0;
      for (Size rank = 0; rank < 4; ++rank)
        for (const LayerSpec& layer : plan.local_layers(rank))
          if (what == Recomputed::attention
                  ? layer.name.ends_with("/attention")
                  : layer.name.starts_with("block") && !layer.name.ends_with("fc2/product"))
            expected += count_flops({layer}, input.batch_size).forward;
      EXPECT_EQ(plan.recomputed, expected) << name_of(what) << ", " << name_of(attention);
    }
}

}  // namespace
}  // namespace tessera
