// SPDX-License-Identifier: Apache-2.0
// With numerics.reproducible, layers of real sizes have the bits of one rank, too. Their sums have
// many parts, whose number must not depend on what a rank holds.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/precision_support.hpp"
#include "engine/serial_training.hpp"
#include "engine/strategy_support.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::of_kind;
using train_test::on_mesh;
using train_test::ShortTraining;
using train_test::train_alone;
using train_test::train_short;

/// Trains with these axes on all ranks and expects the bits of one rank.
void expect_bits_of_one_rank(Experiment setup) {
  setup.model.dtype = DType::float32;
  setup.training.numerics = {.reproducible = true, .grains = 8, .model_grains = 4};
  setup.training.num_epochs = 2;
  const ShortTraining alone = train_alone<float>(setup);
  const Size ranks = Communicator::world().size();
  for (const bool sequence_parallel : {false, true}) {
    setup.training.distributed.sequence_parallel = sequence_parallel;
    std::vector<Experiment> meshes{on_mesh(setup, {{"model", ranks}}, "tensor")};
    if (ranks == 4) meshes.push_back(on_mesh(setup, {{"fsdp", 2}, {"model", 2}}, "fsdp"));
    for (const Experiment& one : meshes) {
      SCOPED_TRACE(testing::Message() << one.training.distributed.mesh_shape.size() << " axes"
                                      << (sequence_parallel ? ", sequence parallelism" : ""));
      const ShortTraining result = train_short<float>(one);
      EXPECT_EQ(result.losses, alone.losses);
      EXPECT_EQ(result.gradients, alone.gradients);
      EXPECT_EQ(result.parameters, alone.parameters);
    }
  }
}

/// Skips numbers of ranks that do not split four heads in a fixed order.
class ReproducibleSizes : public testing::TestWithParam<Size> {
 protected:
  void SetUp() override {
    const Size ranks = Communicator::world().size();
    if (ranks != 2 && ranks != 4) GTEST_SKIP() << "2 and 4 ranks are enough";
  }
};

TEST_P(ReproducibleSizes, TransformersWithThisVocabulary) {
  Experiment setup = of_kind(ModelKind::transformer, DataKind::copy_task, LossKind::cross_entropy);
  setup.model.mlp.activation = Activation::gelu;
  setup.model.transformer = {.vocabulary = GetParam(),
                             .context = 31,
                             .width = 36,
                             .heads = 4,
                             .blocks = 1,
                             .inner_width = 132};
  setup.training.batch_size = setup.data.samples = 64;  // 1984 rows
  setup.training.optimizer = {.kind = OptimizerKind::adam};
  expect_bits_of_one_rank(setup);
}

TEST_P(ReproducibleSizes, NetworksWithThisWidth) {
  Experiment setup = of_kind(ModelKind::mlp, DataKind::random, LossKind::mse);
  setup.model.mlp = {.widths = {9, GetParam(), 300, GetParam()}, .activation = Activation::gelu};
  setup.training.batch_size = setup.data.samples = 1024;
  setup.training.optimizer = {.kind = OptimizerKind::sgd};
  expect_bits_of_one_rank(setup);
}

INSTANTIATE_TEST_SUITE_P(Widths, ReproducibleSizes, testing::Values(11, 16, 32, 257, 1000),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace tessera
