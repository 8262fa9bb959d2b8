// SPDX-License-Identifier: Apache-2.0
// Experiments that are not in the table: layouts and sizes of one kind of model.
#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "engine/experiment_models.hpp"

namespace tessera {
namespace {

using train_test::expect_trains_like_one_rank;
using train_test::Experiment;
using train_test::mlp;
using train_test::on_mesh;
using train_test::ranks;
using train_test::relative_difference;
using train_test::transformer;

/// Three kernels, each replicated, column-parallel or row-parallel, in every order.
TEST(Layouts, AnyKernelMayBeWholeColumnOrRowParallel) {
  const std::array specs{"P(None, None)", "P(None, 'model')", "P('model', None)"};
  for (std::size_t number = 0; number < 27; ++number) {
    SCOPED_TRACE(number);
    Experiment setup = on_mesh(mlp(), {{"model", ranks()}}, "data");
    setup.model.mlp.widths = {3, 5, 7, 2};
    setup.training.microbatches = 2;
    setup.training.distributed.parameter_specs = {{"layer1/kernel", specs[number % 3]},
                                                  {"layer2/kernel", specs[number / 3 % 3]},
                                                  {"layer3/kernel", specs[number / 9]}};
    expect_trains_like_one_rank(setup);
  }
}

/// The stages are as many as the ranks, the chunks of one layer each.
TEST(Layouts, InterleavedStagesTakeAnyNumberOfMicrobatches) {
  const Size p = ranks();
  for (const Size chunks : {2, 3})
    for (const Size microbatches : {Size{1}, p + 1, 2 * p - 1, 3 * p}) {
      SCOPED_TRACE(testing::Message() << chunks << " chunks, " << microbatches << " microbatches");
      Experiment setup = on_mesh(mlp(), {{"pipeline", p}}, "data");
      setup.model.mlp.widths = {3};
      for (Size l = 1; l <= p * chunks; ++l) setup.model.mlp.widths.push_back(2 + l % 5);
      setup.training.batch_size = setup.data.samples = 3 * p + 3;
      setup.training.microbatches = microbatches;
      setup.training.distributed.schedule = PipelineSchedule::interleaved;
      setup.training.distributed.virtual_stages = chunks;
      expect_trains_like_one_rank(setup);
    }
}

/// Beyond 64 microbatches, the steady state of each stage is listed once.
TEST(Layouts, StagesRepeatTheirSteadyState) {
  using enum PipelineSchedule;
  const Size p = ranks(), microbatches = p * (64 / p + 4);
  for (const PipelineSchedule schedule : {one_f_one_b, zero_bubble, interleaved, zbv, dualpipev}) {
    SCOPED_TRACE(name_of(schedule));
    Experiment setup = on_mesh(mlp(), {{"pipeline", p}}, "data");
    setup.model.mlp.widths = {3};
    for (Size l = 1; l <= 2 * p; ++l) setup.model.mlp.widths.push_back(2 + l % 5);
    setup.training.num_epochs = 1;
    setup.training.batch_size = setup.data.samples = microbatches + 1;
    setup.training.microbatches = microbatches;
    setup.training.distributed.schedule = schedule;
    if (schedule != one_f_one_b && schedule != zero_bubble)
      setup.training.distributed.virtual_stages = 2;
    expect_trains_like_one_rank(setup);
  }
}

/// Blocks of attention are larger than the shares of 4 ranks and smaller than those of 1. Attention
/// is recomputed, whose messages in a ring are those of the backward pass.
TEST(Layouts, LongSequencesAlongContext) {
  for (const std::string_view attention : names_of<ContextAttention>)
    for (const bool zigzag : {true, false}) {
      SCOPED_TRACE(attention);
      Experiment setup = on_mesh(transformer(), {{"context", ranks()}}, "fsdp");
      setup.model.transformer.context = 150;
      setup.model.transformer.blocks = 1;
      setup.training.num_epochs = 1;
      setup.training.batch_size = setup.data.samples = 3;
      setup.training.activation_checkpointing.what = Recomputed::attention;
      setup.training.distributed.context_attention = *value_named<ContextAttention>(attention);
      setup.training.distributed.zigzag = zigzag;
      expect_trains_like_one_rank(setup);
    }
}

/// Widths, heads, modes and rows that `model` does not divide, and more ranks than heads or
/// columns.
TEST(Layouts, AnySizesAlongModelHaveTheBitsOfOneRank) {
  std::vector<Experiment> setups(3, train_test::llama());
  for (std::size_t i = 0; i < 3; ++i) {
    TransformerConfig& model = setups[i].model.transformer;
    model.heads = std::array{3, 4, 6}[i];
    model.kv_heads = std::array{0, 2, 3}[i];
    model.width = 8 * model.heads;
    model.vocabulary = 13;
  }
  setups.push_back(transformer());
  setups.back().model.transformer.heads = 3, setups.back().model.transformer.width = 6;
  setups.push_back(mlp());
  setups.back().model.mlp.widths = {5, 37, 29, 1};
  setups.push_back(train_test::vae());
  setups.push_back(train_test::pinn());
  setups.push_back(train_test::fno());
  setups.back().model.fno.modes = 3, setups.back().model.fno.grid = 7;
  for (const Experiment& base : setups)
    for (const Size blocks : {4, 8})
      for (const bool splits_rows : {false, true}) {
        if (splits_rows && base.model.kind == ModelKind::pinn) continue;
        SCOPED_TRACE(testing::Message() << name_of(base.model.kind) << ", " << blocks
                                        << " blocks, rows " << splits_rows);
        Experiment setup = on_mesh(base, {{"model", ranks()}}, "tensor");
        setup.training.numerics = {.reproducible = true, .grains = 4, .model_grains = blocks};
        setup.training.distributed.sequence_parallel = splits_rows;
        setup.training.batch_size = 7;
        setup.data.samples = 9;
        expect_trains_like_one_rank(setup);
      }
}

/// Ranks have runs of grains that are no whole trees, and none with more ranks than grains.
TEST(Layouts, AnyNumberOfRanksHasTheBitsOfOne) {
  Size number = 0;
  const Size half = std::max<Size>(1, ranks() / 2);
  for (const Size grains : {1, 8})
    for (const std::string_view strategy : names_of<Strategy>)
      for (const std::vector<Axis>& axes :
           std::vector<std::vector<Axis>>{{{"data", ranks()}},
                                          {{"fsdp", ranks()}},
                                          {{"data", half}, {"fsdp", 2}},
                                          {{"data", 2}, {"fsdp", half}},
                                          {{"pipeline", 2}, {"data", half}},
                                          {{"expert", ranks()}},
                                          {{"expert", half}, {"fsdp", 2}},
                                          {{"data", 2}, {"expert", half}}}) {
        const MeshShape mesh(axes);
        if (mesh.num_ranks() != ranks() || !train_test::suits(strategy, mesh)) continue;
        const bool has_experts = mesh.find("expert").has_value();
        ++number;
        Experiment setup = on_mesh(has_experts       ? train_test::experts()
                                   : number % 2 == 0 ? mlp()
                                                     : transformer(),
                                   axes, strategy);
        SCOPED_TRACE(testing::Message() << mesh.to_string() << ", " << strategy << ", " << grains);
        setup.training.numerics = {.reproducible = true, .grains = grains};
        setup.training.microbatches = 1;
        setup.training.batch_size = 11;
        setup.data.samples = 13;  // the last batch has 2
        setup.training.num_epochs = 2;
        if (number / 2 % 2 == 0) setup.training.optimizer = {.kind = OptimizerKind::sgd};
        setup.training.distributed.overlap = row_of(*value_named<Strategy>(strategy)).splits_batch;
        expect_trains_like_one_rank(setup);
      }
}

/// All kinds of layers, on sizes that blocks do not divide.
TEST(Layouts, AFixedOrderChangesNoMoreThanRounding) {
  if (ranks() > 1) GTEST_SKIP() << "one rank is enough";
  for (const auto& model :
       {mlp, transformer, train_test::llama, train_test::experts, train_test::biased_experts,
        train_test::vae, train_test::pinn, train_test::fno})
    for (const Size blocks : {1, 4, 8}) {
      Experiment setup = on_mesh(model(), {{"data", 1}}, "data");
      SCOPED_TRACE(testing::Message() << name_of(setup.model.kind) << ", " << blocks << " blocks");
      setup.training.optimizer = {.kind = OptimizerKind::sgd};
      const std::vector<double> losses = train_test::trained_alone(setup).losses;
      setup.training.numerics = {.reproducible = true, .grains = 4, .model_grains = blocks};
      EXPECT_LE(relative_difference(train_test::trained_alone(setup).losses, losses), 1e-10);
    }
}

/// The comparison of bits would see another order of the blocks.
TEST(Layouts, OtherBlocksGiveOtherBits) {
  Experiment setup = mlp();
  setup.training.numerics = {.reproducible = true, .grains = 4, .model_grains = 4};
  const std::vector<double> four = train_test::trained_alone(setup).gradients;
  setup.training.numerics.model_grains = 8;
  EXPECT_NE(train_test::trained_alone(setup).gradients, four);
}

/// Sums of real sizes have many parts, whose number must not depend on what a rank holds.
TEST(Layouts, RealSizesHaveTheBitsOfOneRank) {
  if (ranks() != 2 && ranks() != 4) GTEST_SKIP() << "2 and 4 ranks are enough";
  for (const Size width : {11, 32, 257}) {
    Experiment words = transformer(), numbers = mlp();
    words.model.transformer = {.vocabulary = width,
                               .context = 31,
                               .width = 36,
                               .heads = 4,
                               .blocks = 1,
                               .inner_width = 132};
    words.training.batch_size = words.data.samples = 64;  // 1984 rows
    numbers.model.mlp = {.widths = {9, width, 300, width}, .activation = Activation::gelu};
    numbers.training.batch_size = numbers.data.samples = 1024;
    for (const Experiment& base : {words, numbers})
      for (const bool splits_rows : {false, true}) {
        SCOPED_TRACE(testing::Message() << "width " << width << ", rows " << splits_rows);
        Experiment setup = on_mesh(train_test::in_type<float>(base),
                                   {{"fsdp", ranks() / 2}, {"model", 2}}, "fsdp");
        setup.training.numerics = {.reproducible = true, .grains = 8, .model_grains = 4};
        setup.training.distributed.sequence_parallel = splits_rows;
        const train_test::Trained& alone = train_test::trained_alone(setup);
        Trainer<float> trainer(setup.model, setup.training);
        EXPECT_EQ(trainer.fit(setup.data).epoch_losses, alone.losses);
        EXPECT_EQ(train_test::to_host(trainer.gather(TensorRole::gradient)), alone.gradients);
        EXPECT_EQ(train_test::to_host(trainer.gather()), alone.parameters);
      }
  }
}

/// Sums over positions have the same blocks and the same tree on any number of ranks, which `model`
/// may share.
TEST(Layouts, PositionsHaveTheBitsOfOneRank) {
  Size number = 0;
  for (const bool shares_keys : {false, true})
    for (const ContextAttention attention :
         {ContextAttention::gather, ContextAttention::all_to_all})
      for (const Size context : {8, 31, 150}) {
        SCOPED_TRACE(testing::Message() << context << " positions, shared keys " << shares_keys
                                        << ", " << name_of(attention));
        const bool has_model = ++number % 3 == 0 && ranks() % 2 == 0;
        const Size ways = has_model ? ranks() / 2 : ranks();
        std::vector<Axis> axes{{"context", ways}};
        if (has_model) axes.push_back({"model", 2});
        Experiment setup = on_mesh(train_test::in_type<float>(transformer()), axes, "fsdp");
        setup.training.distributed.sequence_parallel = has_model;
        setup.training.distributed.zigzag = number % 2 == 0;
        TransformerConfig& model = setup.model.transformer;
        model.context = context;
        if (shares_keys) model.kv_heads = model.heads / 2;
        const Size groups = shares_keys ? model.kv_heads : model.heads;
        if (attention == ContextAttention::all_to_all && groups % ranks() != 0) continue;
        setup.training.batch_size = setup.data.samples = 11;
        setup.training.numerics = {true, 4, number % 4 == 1 ? 1 : 4};
        if (ways > 1) setup.training.distributed.context_attention = attention;
        expect_trains_like_one_rank(setup);
      }
}

}  // namespace
}  // namespace tessera
