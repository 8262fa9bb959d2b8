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
#include <tessera/plan/pipeline/stages.hpp>

#include "engine/experiment_models.hpp"

namespace tessera {
namespace {

using train_test::biased_experts;
using train_test::expect_trains_like_one_rank;
using train_test::Experiment;
using train_test::experts;
using train_test::fno;
using train_test::llama;
using train_test::mlp;
using train_test::on_mesh;
using train_test::pinn;
using train_test::ranks;
using train_test::residual_mlp;
using train_test::transformer;
using train_test::vae;

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

std::vector<std::string> meshes(Size of_ranks) {
  switch (of_ranks) {
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
      const std::string all = "=" + std::to_string(of_ranks);
      return {"data" + all,     "fsdp" + all,    "model" + all,
              "pipeline" + all, "context" + all, "expert" + all};
    }
  }
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
      rate(5e-3);  // rounding alone may make a part of a step where a gradient is nearly zero
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
  if (number % 7 != 3 && number % 7 != 0 && number / 7 % 3 == 1) {
    rate(3e-4);
    training.optimizer = {.kind = OptimizerKind::muon, .weight_decay = 0.5};
    training.optimizer.muon_scale = static_cast<MuonScale>(number % 2);
  }
  if (number / 7 % 2 == 0 && moments_per_parameter(training.optimizer) > 0)
    training.optimizer.moments_type = MomentsType::bf16;
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
    distributed.fsdp_unit = static_cast<FsdpUnit>(number / 5 % 2);
  }
  if (number % 3 > 0) train_test::shard_moments_wider(distributed, mesh);
  if (setup.training.optimizer.kind == OptimizerKind::muon &&
      row_of(distributed.strategy).shards.moments)
    distributed.muon_layout = static_cast<MuonLayout>(number % 3);
  if (mesh.axes().back().name == "model" && mesh.axes().back().size > 1 && row.splits_rows)
    distributed.sequence_parallel = number % 2 == 0;
  distributed.model_overlap = distributed.sequence_parallel && number % 4 == 0;
  if (mesh.find("context")) {
    distributed.zigzag = number % 2 == 0;
    if (row.setup != fno) distributed.context_attention = static_cast<ContextAttention>(number % 3);
  }
  if (!has_stages) return;
  const Size stages = mesh.size_of("pipeline");
  const bool has_chunks = std::ssize(units_of(make_model(setup.model).layers)) >= 2 * stages;
  distributed.schedule =
      static_cast<PipelineSchedule>(number % (has_chunks ? names_of<PipelineSchedule>.size() : 4));
  if (has_chunks && (distributed.schedule == PipelineSchedule::interleaved ||
                     distributed.schedule >= PipelineSchedule::zbv))
    distributed.virtual_stages = 2;
  // Transformers have two blocks.
  const Size balances = stages == 2 && distributed.virtual_stages == 1 ? 3 : 2;
  distributed.stage_balance = static_cast<StageBalance>(number / 4 % balances);
}

/// Rounded operands need an optimizer that does not enlarge rounding errors, and routers that do
/// not choose another expert.
void round_operands(Experiment& setup) {
  setup.training.distributed.muon_layout = {};
  setup.training.optimizer = {.kind = OptimizerKind::sgd};
  setup.training.clip = {};
}

/// The types, and whether sums have a fixed order.
Experiment choose_arithmetic(Experiment setup, const MeshShape& mesh, Size number) {
  if (number % 6 > 3 && setup.model.transformer.experts > 0) return setup;
  switch (number % 6) {
    case 1:
      return train_test::in_type<float>(setup);
    case 2:
    case 3: {
      setup.training.distributed.model_overlap = false;
      setup.training.numerics = {true, 8, std::array<Size, 3>{4, 1, 8}[number / 6 % 3]};
      if (DistributedConfig& config = setup.training.distributed;
          config.context_attention == ContextAttention::ring)
        config.context_attention = {};
      setup.training.microbatches = 1;
      // Grains of different sizes, some of them empty.
      setup.training.batch_size = number % 12 < 6 ? 29 : 9;
      setup.data.samples = setup.training.batch_size + (number % 12 < 6 ? 11 : 2);
      if (number % 2 == 0) return train_test::in_type<float>(setup);
      if (number % 4 == 3 || setup.model.transformer.experts > 0) return setup;
      round_operands(setup);
      return train_test::in_type<BFloat16>(setup);
    }
    case 4:
      round_operands(setup);
      if (mesh.size_of("model") > 1 && number % 24 < 12)
        setup.training.distributed.model_reduce_dtype = ModelReduceType::compute;
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
void for_experiments(const Row& row, const F& f, Size of_ranks = ranks()) {
  Size number = &row - rows.data();  // models begin with other choices
  for (const std::string& name : meshes(of_ranks)) {
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

/// One process as each of eight ranks in turn, without the others.
TEST_P(Experiments, AreAsPlannedOnOneOfManyRanks) {
  if (ranks() > 1) GTEST_SKIP() << "needs one rank";
  int rank = 0;
  const auto f = [&](Experiment setup) {
    SCOPED_TRACE(testing::Message() << "rank " << rank);
    setup.training.check_replicas_every = 0;
    // A rank without columns has no numbers that could stand for those of others.
    if (setup.training.numerics.reproducible) setup.training.numerics.model_grains = 8;
    train_test::expect_as_planned(setup, {.fake = FakeRank{rank, 8}});
    rank = (rank + 3) % 8;
  };
  for_experiments(rows[GetParam()], f, 8);
}

/// Each mesh, with the strategies by turns, resumes what the one before it has saved.
TEST_P(Experiments, ResumeOnAnotherMesh) {
  std::vector<std::vector<Experiment>> meshes;
  for_experiments(rows[GetParam()], [&](const Experiment& setup) {
    Experiment plain = rows[GetParam()].setup();
    plain.training.optimizer = {.kind = OptimizerKind::adam,
                                .moments_type = static_cast<MomentsType>(GetParam() % 2)};
    if (GetParam() % 3 == 2) plain.training.optimizer.kind = OptimizerKind::muon;
    DistributedConfig& distributed = plain.training.distributed = setup.training.distributed;
    distributed.mixed_precision = MixedPrecision::no;
    if (GetParam() % 3 != 2) distributed.muon_layout = {};
    distributed.model_reduce_dtype = ModelReduceType::state;
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

/// Ranks that share the only head of keys resume what others have saved, and save for them.
TEST(ExperimentTable, KeyHeadsResumeOnAnotherMesh) {
  Experiment model = llama();
  model.model.transformer.kv_heads = 1;
  const Size ways = ranks() % 2 == 0 ? 2 : 1;
  std::vector<Experiment> meshes{on_mesh(model, {{"model", ranks()}}, "tensor"),
                                 on_mesh(model, {{"fsdp", ranks()}}, "fsdp")};
  for (const std::string_view strategy : {"zero1", "fsdp"})
    meshes.push_back(on_mesh(model, {{"model", ranks() / ways}, {"fsdp", ways}}, strategy));
  for (std::size_t m = 0; m < meshes.size(); ++m)
    train_test::expect_resumes_like_one_rank(meshes[m], meshes[(m + 1) % meshes.size()]);
}

INSTANTIATE_TEST_SUITE_P(All, Experiments, testing::Range(std::size_t{0}, rows.size()),
                         [](const auto& info) { return std::string(rows[info.param].name); });

}  // namespace
}  // namespace tessera
