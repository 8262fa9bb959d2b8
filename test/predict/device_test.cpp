// SPDX-License-Identifier: Apache-2.0
// A plan is for the device of its machine, whatever device this program was built for.
#include <array>
#include <stdexcept>

#include <gtest/gtest.h>

#include <tessera/config/config_io.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/predict/machine_file.hpp>

#include "expect_error.hpp"
#include "plan/plan_support.hpp"

namespace tessera {
namespace {

/// Returns one block of a transformer with 25 heads of 64 columns on 1,024 positions, in bfloat16,
/// and eight samples on one rank.
PlanInput one_block(Device device) {
  PlanInput input = plan_test::tutorial({{"data", 1}});
  input.model = transformer({.vocabulary = 256,
                             .context = 1024,
                             .width = 1600,
                             .heads = 25,
                             .blocks = 1,
                             .inner_width = 6400});
  input.loss = LossKind::cross_entropy;
  input.batch_size = input.samples = 8;
  input.compute_type = DType::bfloat16;
  input.traits.device = device;
  return input;
}

template <class Pass>
double attention_launches(const Plan& plan) {
  const WorkSizes sizes = work_sizes(plan, 0);
  for (const auto& [action, microbatch] : plan.stages.front().actions)
    if (const auto* pass = std::get_if<Pass>(&*action))
      if (sizes.layers.at(pass->layer).kind->name == "attention")
        return work_of(action, microbatch, plan, sizes).front().kernels;
  throw std::invalid_argument("no attention");
}

// A GPU has one block of scores for each head, and 2^24 / 2^20 = 16 heads at once: two launches for
// the 25 heads of a sample. A CPU multiplies each of the 25 * 8 heads by itself, in blocks of 64
// queries and 512 keys: eight blocks of queries see one block of keys, the other eight see two.
TEST(PlansForDevices, HaveTheLaunchesOfTheDevice) {
  const Plan gpu = make_plan(one_block(Device::gpu)), cpu = make_plan(one_block(Device::cpu));
  EXPECT_EQ(attention_launches<Forward>(gpu), 2 * 8 * 2);
  EXPECT_EQ(attention_launches<Backward>(gpu), 5 * 8 * 2);
  EXPECT_EQ(attention_launches<Forward>(cpu), 2 * 24 * 25 * 8);
  EXPECT_EQ(attention_launches<Backward>(cpu), 5 * 24 * 25 * 8);
}

TEST(PlansForDevices, HaveTheScratchMemoryOfTheDevice) {
  const auto scratch = [](Device device) {
    return plan_scratch(make_plan(one_block(device)), 0).layers;
  };
  // Three blocks of scores for each head, and sums of all keys, all values and a block of queries.
  EXPECT_EQ(scratch(Device::gpu), 16 * (3 * 1024 * 1024 + (1024 + 1024 + 1024) * 64));
  EXPECT_EQ(scratch(Device::cpu), 1 * (3 * 64 * 512 + (1024 + 1024 + 64) * 64));
}

// In a fixed order of sums, a GPU multiplies one matrix after another.
TEST(PlansForDevices, HaveALaunchForEachProductInAFixedOrder) {
  PlanInput input = one_block(Device::gpu);
  input.numerics = {.reproducible = true, .grains = 1};
  const Size runs = 8;  // of positions: two in each of four blocks
  EXPECT_EQ(attention_launches<Forward>(make_plan(input)), 2 * 25 * 8 * runs * (runs + 1) / 2);
}

// GPT-2 XL with bytes as tokens on 64 GPUs. Matrices have 48 * 12 * 1600^2 + 256 * 1600 elements,
// and each of 512 * 1024 tokens takes 6 FLOPs for each of them; attention takes 6 * 2 * 1024 * 1600
// for each token and block. A rank has eight microbatches with a sample. A block launches 16
// kernels in the forward pass (4 of attention), 9 in recomputations and 24 in the backward pass (10
// of attention); other layers and the loss launch 9, and the optimizer 2 in a step.
TEST(PlansForDevices, TakeTheTimeOfTheirArithmeticOnGpus) {
  const Machine machine = load_machine(TESSERA_INPUTS "/machines/gpu_cluster.toml");
  const Config config = load_config(
      {.file = TESSERA_INPUTS "/transformer_large.toml", .mesh = "data=64", .strategy = "data"});
  const Plan plan = make_plan(plan_input(config, resolve_mesh(config, 64), machine.traits()));
  const double tokens = 512 * 1024,
               flops = 6 * tokens * (48.0 * 12 * 1600 * 1600 + 256 * 1600 + 48.0 * 2 * 1024 * 1600);
  EXPECT_DOUBLE_EQ(plan.flops.total(), flops);
  EXPECT_FALSE(plan.input.emulates_products());
  const SimulatedStep step = simulate(plan, cost_on(machine, plan));
  const double arithmetic = (plan.flops.total() + plan.recomputed) / 64 / 7e14;
  EXPECT_GT(step.products.work, arithmetic);
  EXPECT_LT(step.products.work, 1.5 * arithmetic);
  EXPECT_NEAR(step.launches(), (8 * (48 * (16 + 9 + 24) + 9) + 2) * 4e-6, 1e-9);
  EXPECT_LT(step.step_seconds, 3 * arithmetic);
}

/// What a plan and its prediction say of one machine. A program for any device must say the same.
struct Recorded {
  const char *input, *mesh, *strategy, *machine;
  Size memory_bytes, scratch_bytes;  ///< of the ranks that need most
  double launches;                   ///< of rank 0 in a step
};
constexpr std::array<Recorded, 8> recorded{{
    {"llama3_8b", "fsdp=8,model=8", "fsdp", "gpu_cluster", 17919069032, 236978176, 11086},
    {"llama3_8b", "fsdp=8,model=8", "fsdp", "cpu_cluster", 17717349224, 35258368, 1950798},
    {"mixtral", "data=2,expert=2", "data", "gpu_cluster", 48374816, 442368, 369},
    {"mixtral", "data=2,expert=2", "data", "cpu_cluster", 48170016, 237568, 1013},
    {"fno_large", "data=8", "data", "gpu_cluster", 8698036792, 134217728, 209},
    {"fno_large", "data=8", "data", "cpu_cluster", 8574503480, 10684416, 69835},
    {"long_context", "context=4,model=2", "data", "gpu_cluster", 10192000, 6438240, 576},
    {"long_context", "context=4,model=2", "data", "cpu_cluster", 4182176, 428416, 4104},
}};

TEST(PlansForDevices, AreTheSameInEveryBuild) {
  for (const Recorded& one : recorded) {
    SCOPED_TRACE(testing::Message() << one.input << " on " << one.machine);
    const std::string inputs = TESSERA_INPUTS "/";
    const Machine machine = load_machine(inputs + "machines/" + one.machine + ".toml");
    Config config = load_config(
        {.file = inputs + one.input + ".toml", .mesh = one.mesh, .strategy = one.strategy});
    const MeshShape mesh = resolve_mesh(config, planned_topology(config));
    const Plan plan = make_plan(plan_input(config, mesh, machine.traits()));
    const MemoryPlan memory = largest_memory(plan).memory;
    const SimulatedStep step = simulate(plan, cost_on(machine, plan));
    EXPECT_EQ(memory.total(), one.memory_bytes);
    EXPECT_EQ(memory.scratch, one.scratch_bytes);
    EXPECT_NEAR(step.launches() / machine.kernel_seconds, one.launches, 1e-6 * one.launches);
  }
}

TEST(PlansForDevices, AreNotCostedOnOtherDevices) {
  Machine machine;
  machine.name = "other";
  machine.flops_per_second = {{"bfloat16", 1e9}};
  machine.device = Device::gpu;
  EXPECT_EQ(test::error_of([&] { cost_on(machine, make_plan(one_block(Device::cpu))); }),
            "the plan is for a cpu, but machine other has the device gpu");
}

}  // namespace
}  // namespace tessera
