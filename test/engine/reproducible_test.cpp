// SPDX-License-Identifier: Apache-2.0
// With numerics.reproducible, every mesh and strategy computes the same bits.
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/precision_support.hpp"
#include "engine/serial_training.hpp"
#include "engine/strategy_support.hpp"

namespace tessera {
namespace {

using train_test::Axes;
using train_test::Experiment;
using train_test::of_kind;
using train_test::on_mesh;
using train_test::ShortTraining;
using train_test::train_alone;
using train_test::train_short;

/// Widths are prime, and grains of batches and of the last batch have different sizes.
Experiment mlp_setup() {
  Experiment setup = train_test::primes(29);
  setup.model.mlp.widths = {3, 11, 13, 7, 5};
  return setup;
}

Experiment transformer_setup() {
  Experiment setup = of_kind(ModelKind::transformer, DataKind::copy_task, LossKind::cross_entropy);
  setup.model.mlp.activation = Activation::gelu;
  setup.model.transformer = {
      .vocabulary = 11, .context = 4, .width = 8, .heads = 4, .blocks = 2, .inner_width = 13};
  return setup;
}

Experiment vae_setup() {
  Experiment setup = train_test::small_vae();
  setup.model.vae.latent = 4;
  return setup;
}

Experiment pinn_setup() {
  Experiment setup = of_kind(ModelKind::pinn, DataKind::poisson_points, LossKind::poisson);
  setup.model.mlp.activation = Activation::tanh;
  setup.model.pinn = {.width = 13, .layers = 3};
  setup.training.learning_rate = 1e-4;
  return setup;
}

Experiment fno_setup() {
  Experiment setup = of_kind(ModelKind::fno, DataKind::darcy, LossKind::relative_l2);
  setup.model.mlp.activation = Activation::gelu;
  setup.training.learning_rate = 1e-3;
  setup.model.fno = {.grid = 9, .modes = 4, .width = 3, .layers = 2, .projection = 5};
  return setup;
}

Experiment residual_mlp_setup() {
  Experiment setup = of_kind(ModelKind::residual_mlp, DataKind::random, LossKind::mse);
  setup.model.mlp.activation = Activation::tanh;
  setup.model.residual_mlp = {3, 11, 13, 2, 2};
  return setup;
}

/// Trains on all ranks and checks traffic and memory.
template <class T>
ShortTraining train_on_mesh(const Experiment& setup) {
  return train_short<T>(train_test::in_precision<T>(setup));
}

/// Returns the number of values whose bits differ.
Size different(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return -1;
  Size count = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    count += std::memcmp(&a[i], &b[i], sizeof(double)) != 0;
  return count;
}

void expect_same_bits(const ShortTraining& a, const ShortTraining& b) {
  EXPECT_EQ(different(a.losses, b.losses), 0);
  EXPECT_EQ(different(a.gradients, b.gradients), 0) << "of " << a.gradients.size();
  EXPECT_EQ(different(a.parameters, b.parameters), 0) << "of " << a.parameters.size();
}

/// The meshes of a number of ranks whose axes are powers of two.
std::vector<Axes> meshes_of(Size ranks) {
  switch (ranks) {
    case 1:
      return {{{"data", 1}}};
    case 2:
      return {{{"data", 2}}, {{"fsdp", 2}}, {{"model", 2}}, {{"pipeline", 2}}};
    case 4:
      return {{{"data", 4}},
              {{"fsdp", 2}, {"data", 2}},
              {{"model", 4}},
              {{"data", 2}, {"model", 2}},
              {{"model", 2}, {"fsdp", 2}},
              {{"pipeline", 2}, {"fsdp", 2}},
              {{"pipeline", 2}, {"model", 2}}};
    case 8:
      return {{{"data", 8}},
              {{"data", 2}, {"fsdp", 4}},
              {{"data", 2}, {"fsdp", 2}, {"model", 2}},
              {{"fsdp", 2}, {"model", 4}},
              {{"pipeline", 2}, {"fsdp", 2}, {"model", 2}},
              {{"data", 4}, {"pipeline", 2}}};
    default:
      return {};
  }
}

struct Case {
  const char* name;
  Experiment (*setup)();
};

class Reproducible : public testing::TestWithParam<Case> {
 protected:
  static Size ranks() { return Communicator::world().size(); }
  /// Returns true for the model with the most kinds of sums and for the one with prime widths. They
  /// stand for all where runs would take too long.
  static bool stands_for_all() {
    return GetParam().name == std::string("mlp") || GetParam().name == std::string("transformer");
  }

  Experiment setup() const {
    Experiment base = GetParam().setup();
    base.training.numerics = {.reproducible = true, .grains = 8, .model_grains = 4};
    base.training.batch_size = 29;
    base.data.samples = 29 + 29 + 11;
    base.training.num_epochs = 3;
    base.training.optimizer = {.kind = OptimizerKind::sgd, .momentum = 0.9};
    // Several reductions are started before the first one ends.
    base.training.distributed.overlap = true;
    base.training.distributed.bucket_bytes = 200;
    return base;
  }

  /// Trains `base` on one rank alone and on every mesh, under every strategy. If it shards
  /// parameters, they are gathered once or for each microbatch, in turn.
  template <class T>
  void expect_same_on_every_mesh(Experiment base) {
    base.model.dtype = dtype_of<StateOf<T>>();
    const ShortTraining expected = train_alone<T>(base);
    Size number = 0;
    for (const Axes& axes : meshes_of(ranks()))
      for (const std::string_view strategy : names_of<Strategy>) {
        const MeshShape mesh(axes);
        if (!train_test::suits(strategy, mesh)) continue;
        Experiment one = train_test::with_options_that_act(on_mesh(base, axes, strategy));
        DistributedConfig& distributed = one.training.distributed;
        const bool gathers =
            can_apply(Applies::gathering, distributed.strategy) && mesh.size_of("pipeline") == 1;
        if (gathers && number++ % 2 == 1) distributed.reshard_after_forward = false;
        SCOPED_TRACE(testing::Message() << strategy << " on " << mesh.to_string());
        expect_same_bits(train_on_mesh<T>(one), expected);
      }
  }
};

TEST_P(Reproducible, SameBitsOnEveryMesh) {
  if (ranks() > 4 && !stands_for_all()) GTEST_SKIP() << "4 ranks are enough";
  expect_same_on_every_mesh<float>(setup());
}

TEST_P(Reproducible, SameBitsInFloat64WithAdamAndClipping) {
  if (ranks() > 4 || !stands_for_all()) GTEST_SKIP() << "4 ranks and two models are enough";
  Experiment base = setup();
  base.training.optimizer = {.kind = OptimizerKind::adam};
  base.training.clip.global_norm = 0.1;
  base.training.activation_checkpointing.units = 1;
  expect_same_on_every_mesh<double>(base);
}

/// The ranks of `model` have different rows of norms and biases, which they sum first.
TEST_P(Reproducible, SameBitsWithSplitRows) {
  const std::string name = GetParam().name;
  if (name == "pinn") GTEST_SKIP() << "no layer of this model splits rows";
  if (ranks() > 4 && !stands_for_all()) GTEST_SKIP() << "4 ranks are enough";
  Experiment base = setup();
  base.training.batch_size = base.data.samples = 32;
  base.model.dtype = DType::float32;
  const ShortTraining expected = train_alone<float>(base);
  base.training.distributed.sequence_parallel = true;
  for (const Axes& axes : meshes_of(ranks())) {
    if (axes.back().name != "model") continue;
    const Experiment one = train_test::with_options_that_act(on_mesh(base, axes, "fsdp"));
    SCOPED_TRACE(MeshShape(axes).to_string());
    expect_same_bits(train_on_mesh<float>(one), expected);
  }
}

TEST_P(Reproducible, SameBitsWithEverySchedule) {
  const Experiment base = [&] {
    Experiment one = setup();
    one.model.dtype = DType::float32;
    return one;
  }();
  const ShortTraining expected = train_alone<float>(base);
  if (ranks() != 2 && ranks() != 4) GTEST_SKIP() << "2 and 4 ranks are enough";
  for (const PipelineSchedule schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved,
        PipelineSchedule::zero_bubble}) {
    Experiment one = on_mesh(base, {{"pipeline", 2}, {"data", ranks() / 2}}, "data");
    one.training.microbatches = 8 / (ranks() / 2);
    one.training.distributed.schedule = schedule;
    SCOPED_TRACE(name_of(schedule));
    expect_same_bits(train_on_mesh<float>(one), expected);
  }
}

TEST_P(Reproducible, WarmStepsAllocateNothing) {
  if (!is_power_of_two(ranks())) GTEST_SKIP() << "needs a power of two of ranks";
  Experiment one = on_mesh(setup(), {{"data", ranks()}}, "data");
  train_test::expect_no_allocation_when_warm<float>(one);
}

TEST_P(Reproducible, SameBitsInMixedPrecision) {
  if (ranks() > 4 || !stands_for_all()) GTEST_SKIP() << "4 ranks and two models are enough";
  expect_same_on_every_mesh<BFloat16>(setup());
  expect_same_on_every_mesh<Float16>(setup());
}

TEST_P(Reproducible, SameBitsInTf32) {
  if (ranks() > 4 || !stands_for_all()) GTEST_SKIP() << "4 ranks and two models are enough";
  Experiment base = setup();
  base.model.matmul_precision = MatmulPrecision::tf32;
  expect_same_on_every_mesh<float>(base);
}

std::string rejection(const std::function<void(Experiment&)>& change) {
  Experiment one = mlp_setup();
  one.model.mlp.widths = {3, 8, 10};
  one.training.numerics.reproducible = true;
  change(one);
  try {
    const Config config{one.model, one.data, one.training, {}};
    const DistributedConfig& distributed = one.training.distributed;
    std::vector<Axis> axes;
    for (std::size_t a = 0; a < distributed.mesh_shape.size(); ++a)
      axes.push_back({distributed.mesh_axis_names[a], distributed.mesh_shape[a]});
    make_plan(plan_input(config, MeshShape(axes)));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ReproducibleRules, MeshesThatSplitGrainsAreRejected) {
  const auto with = [](const Axes& axes) {
    return [axes](Experiment& one) { one = on_mesh(one, axes, "data"); };
  };
  EXPECT_EQ(rejection(with({{"data", 8}})), "");
  EXPECT_EQ(rejection(with({{"data", 3}})),
            "numerics.reproducible = true: needs a power of two of ranks of the batch, not 3; the "
            "nearest are 2 and 4");
  EXPECT_NE(rejection(with({{"context", 2}})), "");
  EXPECT_EQ(rejection(with({{"data", 16}})),
            "numerics.grains = 8: must be at least 16, the number of ranks of the batch");
  EXPECT_EQ(rejection([](Experiment& one) {
              one = on_mesh(one, {{"data", 2}}, "data");
              one.training.microbatches = 2;
            }),
            "training.microbatches = 2: must be 4 with numerics.reproducible, or absent: each of "
            "the 4 grains of a rank is a microbatch");
  EXPECT_EQ(rejection([](Experiment& one) {
              one = on_mesh(one, {{"data", 2}}, "data");
              one.training.microbatches = 4;
            }),
            "");
  EXPECT_EQ(rejection(with({{"model", 8}})),
            "numerics.model_grains = 4: must be a multiple of the 8 ranks of the mesh axis model");
  EXPECT_EQ(rejection([](Experiment& one) {
              one.training.numerics.grains = 6;
              one = on_mesh(one, {{"data", 1}}, "data");
            }),
            "numerics.grains = 6: must be a power of two");
  EXPECT_EQ(
      rejection([&](Experiment& one) {
        one.model.mlp.widths = {3, 10, 4};
        one = on_mesh(one, {{"model", 4}}, "data");
      }),
      "numerics.reproducible = true: splits the 10 columns of layer1/product into 2 blocks, "
      "which 4 ranks of the mesh axis model do not divide; use at most 2 ranks, or a multiple "
      "of 4 columns");
}

INSTANTIATE_TEST_SUITE_P(All, Reproducible,
                         testing::Values(Case{"mlp", mlp_setup}, Case{"vae", vae_setup},
                                         Case{"transformer", transformer_setup},
                                         Case{"pinn", pinn_setup}, Case{"fno", fno_setup},
                                         Case{"residual_mlp", residual_mlp_setup}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tessera
