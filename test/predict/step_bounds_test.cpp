// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <random>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/predict/step_bounds.hpp>

namespace tessera {
namespace {

class Drawer {
 public:
  explicit Drawer(unsigned seed) : engine_(seed) {}
  Size one_of(std::initializer_list<Size> values) {
    return values.begin()[engine_() % values.size()];
  }
  bool flip() { return engine_() % 2 == 0; }
  template <class Value>
  const Value& one_of(const std::vector<Value>& values) {
    return values[engine_() % values.size()];
  }

 private:
  std::mt19937 engine_;
};

Config random_config(Drawer& draw) {
  Config config;
  TrainingConfig& training = config.training;
  constexpr std::array losses{LossKind::mse, LossKind::mse,     LossKind::cross_entropy,
                              LossKind::bce, LossKind::poisson, LossKind::relative_l2};
  const Size number = draw.one_of({0, 1, 2, 2, 2, 3, 4, 5});
  training.loss = losses[static_cast<std::size_t>(number)];
  const ModelKind kind = config.model.kind = static_cast<ModelKind>(number);
  if (kind == ModelKind::mlp)
    config.model.mlp.widths = {draw.one_of({3, 16}), draw.one_of({7, 64}), 24, 24, 5};
  if (kind == ModelKind::residual_mlp)
    config.model.residual_mlp = {.input_width = 8, .width = draw.one_of({12, 32}), .blocks = 3};
  if (kind == ModelKind::transformer)
    config.model.transformer = {.vocabulary = draw.one_of({11, 64}),
                                .context = 16,
                                .width = 24,
                                .heads = draw.one_of({2, 4, 6}),
                                .blocks = draw.one_of({1, 4}),
                                .inner_width = draw.one_of({32, 50}),
                                .experts = draw.one_of({0, 0, 4})};
  if (kind == ModelKind::fno)
    config.model.fno = {.grid = 16, .modes = 4, .width = 8, .layers = 2, .projection = 8};
  training.batch_size = draw.one_of({8, 24, 37, 64});
  config.data.samples = 2 * training.batch_size;
  training.microbatches = draw.one_of({1, 1, 2, 3, 4, 8});
  training.activation_checkpointing = {
      .units = draw.one_of({0, 0, 1, 2}),
      .what = static_cast<Recomputed>(draw.one_of({0, 0, 0, 1, 2, 3}))};
  training.numerics.reproducible = draw.one_of({0, 0, 0, 1}) == 1;
  DistributedConfig& distributed = training.distributed;
  distributed.strategy = static_cast<Strategy>(draw.one_of({0, 1, 2, 3, 4}));
  distributed.overlap = draw.flip();
  distributed.sequence_parallel = draw.one_of({0, 0, 1}) == 1;
  distributed.schedule = static_cast<PipelineSchedule>(draw.one_of({0, 1, 2, 3}));
  distributed.virtual_stages = distributed.schedule == PipelineSchedule::interleaved ? 2 : 1;
  distributed.context_attention = static_cast<ContextAttention>(draw.one_of({0, 1, 2}));
  return config;
}

Machine random_machine(Drawer& draw) {
  Machine machine{.name = "drawn",
                  .device = draw.flip() ? Device::cpu : Device::gpu,
                  .flops_per_second = {{"float32", 1e9}},
                  .memory_bytes_per_second = 1e9,
                  .memory_bytes = Size{1} << 40,
                  .network = {}};
  machine.kernel_seconds = draw.flip() ? 1e-6 : 1e-4;
  machine.overlap = draw.flip() ? 1 : 0.5;
  machine.product_overlap = draw.flip() ? 1 : 0.3;
  if (draw.flip()) machine.side_efficiency = {{8, 0.2}, {64, 0.6}, {512, 1.0}};
  machine.function_seconds = draw.flip() ? 0 : 1e-9;
  const double rate = draw.flip() ? 1e7 : 1e10;
  machine.network = {{"node", 4, 1e-6, 4 * rate}, {"all", 64, 1e-5, rate}};
  if (draw.flip()) machine.caches = {{draw.one_of({10'000, 200'000}), 1e10}};
  return machine;
}

// Whatever the model, mesh, options and machine, a step is not shorter and its memory not smaller.
TEST(StepBounds, AreNeverAboveTheSimulation) {
  Drawer draw(20'261);
  int compared = 0, with_stages = 0;
  double tightest = 0, tightest_memory = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const Config config = random_config(draw);
    const Machine machine = random_machine(draw);
    const MeshShape mesh =
        draw.one_of(factorisations(draw.one_of({1, 2, 4, 6, 8, 16}),
                                   {"pipeline", "data", "fsdp", "expert", "context", "model"}));
    try {
      const PlanInput input = plan_input(config, mesh, machine.traits());
      const Plan plan = make_plan(input);
      Size memory = 0, state = 0;
      for (Size rank = 0; rank < mesh.num_ranks(); ++rank) {
        memory = std::max(memory, plan.memory(rank).total());
        state = std::max(state, plan.memory(rank).persistent());
      }
      const double seconds = simulate(plan, cost_on(machine, plan)).step_seconds;
      const StepBound bound = StepBounds(machine).of(input, {input.microbatches}).front();
      EXPECT_LE(bound.seconds, seconds * (1 + 1e-9)) << mesh.to_string() << ", trial " << trial;
      EXPECT_LE(bound.memory_bytes, memory) << mesh.to_string() << ", trial " << trial;
      tightest = std::max(tightest, bound.seconds / seconds);
      tightest_memory = std::max(
          tightest_memory, static_cast<double>(bound.memory_bytes) / static_cast<double>(state));
      ++compared;
      if (input.has_stages()) ++with_stages;
    } catch (const Error&) {  // this mesh cannot run this model
    }
  }
  EXPECT_GT(compared, 200);
  EXPECT_GT(with_stages, 40);
  EXPECT_GT(tightest, 0.99);
  EXPECT_EQ(tightest_memory, 1);
}

}  // namespace
}  // namespace tessera
