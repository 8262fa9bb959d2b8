// SPDX-License-Identifier: Apache-2.0
// The experiment table: every model on every mesh of this launch, under every strategy that the
// mesh allows, with options in turn, shows all that expect_trains_like_one_rank() asks for.
// ShardingFuzz draws further experiments.
#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/text.hpp>

#include "engine/one_rank.hpp"

namespace tessera {
namespace {

using train_test::expect_trains_like_one_rank;
using train_test::Experiment;
using train_test::of_kind;
using train_test::on_mesh;

Size ranks() { return Communicator::world().size(); }

/// Widths are prime; a layer has fewer columns than 8 ranks.
Experiment mlp() {
  Experiment setup = of_kind(ModelKind::mlp, DataKind::random, LossKind::mse);
  setup.model.mlp = {.widths = {3, 11, 13, 7, 5}, .activation = Activation::tanh};
  return setup;
}

Experiment residual_mlp() {
  Experiment setup = of_kind(ModelKind::residual_mlp, DataKind::random, LossKind::mse);
  setup.model.mlp.activation = Activation::tanh;
  setup.model.residual_mlp = {3, 11, 13, 2, 2};
  return setup;
}

Experiment transformer() {
  Experiment setup = of_kind(ModelKind::transformer, DataKind::copy_task, LossKind::cross_entropy);
  const Size heads = ranks() % 3 == 0 ? 6 : 8;
  setup.model.mlp.activation = Activation::gelu;
  setup.model.transformer = {.vocabulary = 11,
                             .context = 7,
                             .width = 2 * heads,
                             .heads = heads,
                             .blocks = 2,
                             .inner_width = 13};
  return setup;
}

/// The transformer as Llama has it. Two heads share keys; without an axis `context`, all do.
Experiment llama() {
  Experiment setup = transformer();
  TransformerConfig& model = setup.model.transformer;
  setup.model.mlp.activation = Activation::silu;
  setup.model.mlp.bias = false;
  setup.training.learning_rate /= 4;  // the tied table has two gradients
  model.norm = NormKind::rms_norm;
  model.positions = Positions::rope;
  model.rope_theta = 100, model.rope_scaling = 2, model.rope_original_context = 5;
  model.kv_heads = model.heads;
  model.heads *= 2;
  model.width *= 4;  // a norm of very few columns magnifies rounding errors
  model.qk_norm = true;
  model.tied = true;
  model.feed_forward = FeedForward::gated;
  model.inner_width = 12 * ranks();
  return setup;
}

Experiment experts() {
  Experiment setup = transformer();
  TransformerConfig& model = setup.model.transformer;
  model.experts = ranks() % 3 == 0 ? 6 : 8;
  model.top_k = 2;
  model.capacity_factor = 1;
  model.balance_loss = 0.3;
  model.router_z_loss = 0.1;
  return setup;
}

/// The experts as DeepSeek-V3 has them.
Experiment biased_experts() {
  Experiment setup = experts();
  TransformerConfig& model = setup.model.transformer;
  model.feed_forward = FeedForward::gated;
  model.inner_width = 2 * ranks();
  model.balance_loss = TransformerConfig().balance_loss;
  model.router = Router::sigmoid;
  model.renormalize = true;
  model.shared_experts = 2;
  model.balance = Balance::bias;
  model.bias_rate = 0.05;
  return setup;
}

Experiment vae() {
  Experiment setup = train_test::small_vae();
  setup.model.vae.latent = 4;
  return setup;
}

Experiment pinn() {
  Experiment setup = of_kind(ModelKind::pinn, DataKind::poisson_points, LossKind::poisson);
  setup.model.mlp.activation = Activation::tanh;
  setup.model.pinn = {.width = 13, .layers = 3};
  setup.training.learning_rate = 1e-4;
  return setup;
}

/// `model` or `context` divides the modes; the grid's points are uneven shares.
Experiment fno() {
  Experiment setup = of_kind(ModelKind::fno, DataKind::darcy, LossKind::relative_l2);
  setup.model.mlp.activation = Activation::gelu;
  setup.training.learning_rate = 1e-3;
  const Size modes = ranks() % 3 == 0 ? 3 : 4;
  setup.model.fno = {
      .grid = 2 * modes + 1, .modes = modes, .width = 3, .layers = 2, .projection = 5};
  return setup;
}

struct Row {
  const char* name;
  Experiment (*setup)();
  bool splits_positions = false;  ///< allows an axis `context`
  bool splits_experts = false;    ///< allows an axis `expert`
  bool splits_rows = true;        ///< sequence parallelism splits rows of some layer
};

const std::array<Row, 9> rows{{{"mlp", mlp},
                               {"residual_mlp", residual_mlp},
                               {"transformer", transformer, true},
                               {"llama", llama, true},
                               {"experts", experts, true, true},
                               {"biased_experts", biased_experts, true, true},
                               {"vae", vae},
                               {"pinn", pinn, false, false, false},
                               {"fno", fno, true}}};

std::vector<std::string> meshes() {
  switch (ranks()) {
    case 1:
      return {"data=1,fsdp=1,model=1"};
    case 4:
      return split_text(
          "data=4 model=4 data=2,fsdp=2 fsdp=2,data=2 fsdp=2,model=2 model=2,data=2 pipeline=4 "
          "pipeline=2,data=2 pipeline=2,fsdp=2 pipeline=2,model=2 context=4 data=2,context=2 "
          "context=2,fsdp=2 pipeline=2,context=2 context=2,model=2 expert=4 data=2,expert=2 "
          "expert=2,fsdp=2 expert=2,model=2 pipeline=2,expert=2 expert=2,context=2",
          ' ');
    case 6:
      return split_text(
          "data=3,fsdp=2 fsdp=2,model=3 fsdp=3,pipeline=2 pipeline=2,model=3 context=3,pipeline=2 "
          "expert=3,data=2 context=3,expert=2 model=3,expert=2",
          ' ');
    case 8:
      return split_text(
          "data=2,fsdp=4 data=2,fsdp=2,model=2 model=8 pipeline=2,data=2,fsdp=2 "
          "pipeline=2,fsdp=2,model=2 data=2,model=2,pipeline=2 context=8 data=2,context=2,model=2 "
          "pipeline=2,context=2,model=2 expert=8 data=2,expert=2,fsdp=2 fsdp=2,expert=2,model=2 "
          "context=2,expert=2,model=2",
          ' ');
    default: {
      const std::string all = "=" + std::to_string(ranks());
      return {"data" + all,     "fsdp" + all,    "model" + all,
              "pipeline" + all, "context" + all, "expert" + all};
    }
  }
}

/// Returns true if the ranks of each axis have whole grains of every sum.
bool keeps_grains(const Experiment& setup, const MeshShape& mesh) {
  const TransformerConfig& model = setup.model.transformer;
  if (model.tied && mesh.size_of("pipeline") > 1) return false;
  if (model.kv_heads > 0 && model.kv_heads < mesh.size_of("model")) return false;
  return mesh.size_of("context") == 1 && mesh.size_of("expert") == 1 &&
         mesh.size_of("model") <= 4 &&
         std::has_single_bit(static_cast<std::size_t>(mesh.num_ranks()));
}

/// What is recomputed. A kind is recomputed only if the model has it.
Recomputation recomputation(const Experiment& setup, Size number) {
  constexpr std::array<Recomputation, 5> all{{{.units = 1},
                                              {.what = Recomputed::block},
                                              {.what = Recomputed::cheap},
                                              {.units = 3},
                                              {.what = Recomputed::attention}}};
  const bool attends = setup.model.kind == ModelKind::transformer,
             is_mlp = setup.model.kind == ModelKind::mlp;
  return all[static_cast<std::size_t>(number / 2) % (attends ? 5 : is_mlp ? 2 : 4)];
}

/// How an optimizer is called, and in which parts a step is computed; the first choice is plain.
void choose_training(Experiment& setup, Size number) {
  TrainingConfig& training = setup.training;
  const auto rate = [&](double of) {
    training.learning_rate = std::min(training.learning_rate, of);
  };
  switch (number % 7) {
    case 1:
      training.microbatches = 3;
      training.optimizer.momentum = 0.9;
      break;
    case 2:
      rate(0.01);
      training.microbatches = 3;
      training.optimizer = {.kind = OptimizerKind::adam};
      training.clip = {.global_norm = 0.1, .value = 0.05};
      training.check_finite = true;
      break;
    case 3:  // some ranks have no samples
      training.batch_size = training.microbatches = 3;
      setup.data.samples = 8;
      break;
    case 4:
      rate(1e-3);
      training.microbatches = 2;
      training.optimizer = {.kind = OptimizerKind::adamw,
                            .weight_decay = 2,
                            .weight_decay_on = WeightDecayOn::kernels};
      training.schedule = {.kind = ScheduleKind::wsd,
                           .steps = 5,
                           .end_factor = 0.2,
                           .decay_steps = 2,
                           .warmup_steps = 1};
      break;
    case 5:
      rate(1e-3);
      training.optimizer = {.kind = OptimizerKind::rmsprop};
      training.microbatches = 4;
      training.activation_checkpointing = recomputation(setup, number);
      training.check_replicas_every = 1;
      break;
    case 6:
      training.learning_rate /= 50;
      training.distributed.gradient_reduce_type = GradientReduceType::sum;
      training.activation_checkpointing = recomputation(setup, number + 1);
      break;
  }
}

/// How the mesh is used.
void choose_sharding(Experiment& setup, const Row& row, const MeshShape& mesh, Size number) {
  DistributedConfig& distributed = setup.training.distributed;
  const bool gathers = row_of(distributed.strategy).shards.parameters,
             has_stages = mesh.size_of("pipeline") > 1;
  if (row_of(distributed.strategy).splits_batch) {
    distributed.overlap = number % 5 > 1;
    if (!gathers) distributed.bucket_bytes = std::array{1 << 20, 300, 1}[number % 3];
  }
  if (gathers) {
    distributed.prefetch = number % 5 != 2;
    distributed.reshard_after_forward = has_stages || number % 5 != 3;
    distributed.keep_last_unit = has_stages || number % 5 != 4;
  }
  if (mesh.axes().back().name == "model" && mesh.axes().back().size > 1 && row.splits_rows)
    distributed.sequence_parallel = number % 2 == 0;
  if (mesh.find("context")) {
    distributed.zigzag = number % 2 == 0;
    if (row.setup != fno) distributed.context_attention = static_cast<ContextAttention>(number % 3);
  }
  if (!has_stages) return;
  distributed.schedule = static_cast<PipelineSchedule>(number % 4);
  distributed.stage_balance = static_cast<StageBalance>(number / 4 % 2);
  const bool has_chunks = mesh.size_of("pipeline") == 2 && (row.setup == mlp);
  if (distributed.schedule == PipelineSchedule::interleaved && has_chunks)
    distributed.virtual_stages = 2;
}

/// Rounded operands need an optimizer that does not enlarge rounding errors, and routers that do
/// not choose another expert.
void round_operands(Experiment& setup) {
  setup.training.optimizer = {.kind = OptimizerKind::sgd};
  setup.training.clip = {};
}

/// The types, and whether sums have a fixed order.
Experiment choose_arithmetic(Experiment setup, const MeshShape& mesh, Size number) {
  if (number % 6 > 1 && setup.model.transformer.experts > 0) return setup;
  switch (number % 6) {
    case 1:
      return train_test::in_type<float>(setup);
    case 2:
    case 3: {
      if (!keeps_grains(setup, mesh)) return setup;
      const Size batch = mesh.size_of("data") * mesh.size_of("fsdp");
      setup.training.numerics = {.reproducible = true, .grains = 8, .model_grains = 4};
      setup.training.microbatches = mesh.size_of("pipeline") > 1 ? 8 / batch : 1;
      // Grains of different sizes, or equal ones if ranks have different rows.
      const bool equal = setup.training.distributed.sequence_parallel;
      setup.training.batch_size = equal ? 32 : 29;
      setup.data.samples = setup.training.batch_size + (equal ? 32 : 11);
      if (number % 2 == 0) return train_test::in_type<float>(setup);
      if (number % 4 == 3) return setup;
      round_operands(setup);
      return train_test::in_type<BFloat16>(setup);
    }
    case 4:
      round_operands(setup);
      return number % 4 == 0 ? train_test::in_type<BFloat16>(setup)
                             : train_test::in_type<Float16>(setup);
    case 5:
      round_operands(setup);
      setup.model.matmul_precision = MatmulPrecision::tf32;
      return train_test::in_type<float>(setup);
    default:
      return setup;
  }
}

/// Calls f(experiment) for each experiment of a row, and names it in messages. The lists of choices
/// have lengths without a common divisor, so each choice of one list meets all of the others.
template <class F>
void for_experiments(const Row& row, const F& f) {
  Size number = &row - rows.data();  // models begin with other choices
  for (const std::string& name : meshes()) {
    const MeshShape mesh(parse_axes(name));
    if ((mesh.find("context") && !row.splits_positions) ||
        (mesh.find("expert") && !row.splits_experts))
      continue;
    for (const std::string_view strategy : names_of<Strategy>) {
      if (!train_test::suits(strategy, mesh)) continue;
      Experiment setup = on_mesh(row.setup(), mesh.axes(), strategy);
      choose_training(setup, number);
      choose_sharding(setup, row, mesh, number);
      if (row.setup == transformer && number % 3 == 0) setup.training.ignore_index = 0;
      if (row.setup == llama && mesh.size_of("context") == 1) setup.model.transformer.kv_heads = 1;
      setup = choose_arithmetic(setup, mesh, number);
      SCOPED_TRACE(testing::Message()
                   << row.name << ", " << strategy << " on " << name << ", choices " << number);
      f(setup);
      ++number;
    }
  }
}

/// The parameter is the number of a row.
class Experiments : public testing::TestWithParam<std::size_t> {};

TEST_P(Experiments, TrainLikeOneRank) {
  for_experiments(rows[GetParam()],
                  [](const Experiment& setup) { expect_trains_like_one_rank(setup); });
}

/// Each mesh, with the strategies by turns, resumes what the one before it has saved.
TEST_P(Experiments, ResumeOnAnotherMesh) {
  std::vector<std::vector<Experiment>> meshes;
  for_experiments(rows[GetParam()], [&](const Experiment& setup) {
    Experiment plain = rows[GetParam()].setup();
    plain.training.optimizer = {.kind = OptimizerKind::adam};
    DistributedConfig& distributed = plain.training.distributed = setup.training.distributed;
    distributed.mixed_precision = MixedPrecision::no;
    distributed.gradient_reduce_type = GradientReduceType::mean;
    const auto& names = distributed.mesh_axis_names;
    if (meshes.empty() || meshes.back().front().training.distributed.mesh_axis_names != names)
      meshes.emplace_back();
    meshes.back().push_back(plain);
  });
  const auto chosen = [&](std::size_t m) {
    const std::vector<Experiment>& strategies = meshes[m % meshes.size()];
    return strategies[(GetParam() + m) % strategies.size()];
  };
  for (std::size_t m = 0; m < meshes.size(); ++m) {
    SCOPED_TRACE(testing::Message() << "mesh " << m << " and the next one");
    train_test::expect_resumes_like_one_rank(chosen(m), chosen(m + 1));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Experiments, testing::Range(std::size_t{0}, rows.size()),
                         [](const auto& info) { return std::string(rows[info.param].name); });

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
    for (const Size microbatches : {Size{1}, p + 1, 2 * p - 1}) {
      SCOPED_TRACE(testing::Message() << chunks << " chunks, " << microbatches << " microbatches");
      Experiment setup = on_mesh(mlp(), {{"pipeline", p}}, "data");
      setup.model.mlp.widths = {3};
      for (Size l = 1; l <= p * chunks; ++l) setup.model.mlp.widths.push_back(2 + l % 5);
      setup.training.batch_size = setup.data.samples = 2 * p + 3;
      setup.training.microbatches = microbatches;
      setup.training.distributed.schedule = PipelineSchedule::interleaved;
      setup.training.distributed.virtual_stages = chunks;
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

}  // namespace
}  // namespace tessera
