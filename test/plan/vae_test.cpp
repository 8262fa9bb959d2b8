// SPDX-License-Identifier: Apache-2.0
// What a variational autoencoder makes ranks say to each other: two heads on one layer, and a
// second term of the loss.
#include <string>

#include <gtest/gtest.h>

#include <tessera/nn/models/models.hpp>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

PlanInput vae_input(std::vector<Axis> axes) {
  PlanInput input = plan_test::tutorial(std::move(axes));
  input.model = vae({.input_width = 9, .hidden = {4, 6}, .latent = 2});
  input.loss = LossKind::bce;
  input.global_batch = input.samples = 6;
  return input;
}

/// "model all_reduce 4 x, 192 B; ..." of these steps, epochs and validations.
std::string traffic_of(const PlanInput& input, PlannedRun run) {
  const Plan plan = make_plan(input);
  run.plan = &plan;
  std::string text;
  for (const LedgerRow& row : planned_traffic({run}, 0))
    text += (text.empty() ? "" : "; ") + row.axis + " " + std::string(name_of(row.operation)) +
            " " + std::to_string(row.calls) + " x, " + std::to_string(row.payload_bytes) + " B";
  return text;
}

TEST(VaeTraffic, OfAMeshIsWhatItsLayersNeed) {
  // A rank's 3 samples; parameters 20 + 18, heads 14 + 14, 9 + 16 + 25. All-reduces of what
  // encoder2 (6 columns) and decoder2 (4) give, and of the gradients of what decoder3 (4) and
  // decoder1 (2) read; logits (9) are gathered, heads are whole.
  const std::string model = std::to_string(3 * (6 + 4 + 4 + 2) * 4),
                    logits = std::to_string(3 * 9 * 4), gradients = std::to_string(116 * 4);
  EXPECT_EQ(traffic_of(vae_input({{"data", 2}, {"model", 2}}), {.steps = 1}),
            "data all_reduce 1 x, " + gradients + " B; model all_reduce 4 x, " + model +
                " B; model all_gather 1 x, " + logits + " B");
}

/// As in the encoder of the workshop's guide: columns in every layer, with gathers between.
TEST(VaeTraffic, SpecsMakeEveryLayerOfTheEncoderColumnParallel) {
  PlanInput input = vae_input({{"model", 2}});
  for (const char* kernel : {"encoder1/kernel", "encoder2/kernel"})
    input.parameter_specs[kernel] = PartitionSpec::parse("P(None, 'model')");
  const Plan plan = make_plan(input);
  for (const ParameterPlan& parameter : plan.stages.front().parameters.parameters)
    if (parameter.path == "encoder1/kernel" || parameter.path == "encoder2/kernel") {
      EXPECT_EQ(parameter.along_model, Placement::shard(1)) << parameter.path;
    }
  // 6 samples. Gathers of encoder1 (4 columns; once more for the gradient of encoder2's kernel), of
  // encoder2 (6) and of the logits (9); the gradient of encoder1's output (4) is scattered.
  EXPECT_EQ(traffic_of(input, {.steps = 1}),
            "model all_reduce 3 x, " + std::to_string(6 * (4 + 4 + 2) * 4) +
                " B; model reduce_scatter 1 x, " + std::to_string(6 * 4 * 4) +
                " B; model all_gather 4 x, " + std::to_string(6 * (4 + 4 + 6 + 9) * 4) + " B");
}

TEST(VaeTraffic, LossesAreTwoSumsOfEachMicrobatch) {
  PlanInput input = vae_input({{"data", 2}});
  input.samples = 18;  // three steps
  input.microbatches = 2;
  input.validation_samples = 7;  // two batches
  EXPECT_EQ(input.loss_terms(), 2);
  EXPECT_EQ(traffic_of(input, {.epochs = 1}),
            "data all_reduce 1 x, " + std::to_string(3 * 2 * 2 * 8) + " B");
  EXPECT_EQ(traffic_of(input, {.validations = 1}),
            "data all_reduce 1 x, " + std::to_string(2 * 2 * 2 * 8) + " B");
  const SumsPlan sums = plan_sums(input, make_plan(input).stages.front());
  EXPECT_EQ(sums.losses, 12);
  EXPECT_EQ(sums.validation, 8);
  input.model = mlp({.widths = {9, 4, 9}});
  EXPECT_EQ(input.loss_terms(), 1);
  EXPECT_EQ(traffic_of(input, {.epochs = 1}),
            "data all_reduce 1 x, " + std::to_string(3 * 2 * 8) + " B");
}

/// One on the stage of logvar, one on the stage of the logits, summed up over both.
TEST(VaeTraffic, StagesAddUpTheirTermsOfTheLoss) {
  const PlanInput input = vae_input({{"pipeline", 2}});
  const std::string text = traffic_of(input, {.epochs = 1});
  EXPECT_EQ(text, "pipeline all_reduce 1 x, 16 B");
  const Plan plan = make_plan(input);
  const auto has = [&](std::size_t stage, StepOperation operation, const char* layer) {
    for (const Action& action : plan.stages[stage].actions)
      if (action.is(operation) &&
          (operation == StepOperation::loss || plan.input.model.layers[action.index].name == layer))
        return true;
    return false;
  };
  EXPECT_TRUE(has(0, StepOperation::forward, "latent/output"));
  EXPECT_FALSE(has(1, StepOperation::forward, "latent/output"));
  EXPECT_TRUE(has(1, StepOperation::loss, ""));
}

}  // namespace
}  // namespace tessera
