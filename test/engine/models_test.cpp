// SPDX-License-Identifier: Apache-2.0
// Every model beyond the MLP under every strategy, against its layers run by themselves on one
// rank.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/config/to_plan_input.hpp>

#include "engine/serial_training.hpp"

namespace tessera {
namespace {

using train_test::expect_trains_like_its_layers;
using train_test::Experiment;
using train_test::for_strategies;

/// Two batches and a smaller one in each of two epochs; sizes that launches of 2, 3, 4, 6 and 8
/// ranks split, or do not split evenly.
Experiment of_kind(ModelKind kind, DataKind data, LossKind loss) {
  Experiment setup = train_test::primes(7);
  setup.model.kind = kind;
  setup.model.mlp.widths.clear();
  setup.model.dtype = DType::float64;
  setup.training.optimizer.kind = OptimizerKind::sgd;
  setup.training.loss = loss;
  setup.training.learning_rate = 0.1;
  setup.data.kind = data;
  return setup;
}

Experiment transformer_setup(Size ranks) {
  Experiment setup = of_kind(ModelKind::transformer, DataKind::copy_task, LossKind::cross_entropy);
  setup.model.mlp.activation = Activation::gelu;
  const Size heads = ranks == 8 || ranks == 4 ? ranks : 6;
  setup.model.transformer = {.vocabulary = 11,
                             .context = 5,
                             .width = 2 * heads,
                             .heads = heads,
                             .blocks = 2,
                             .inner_width = 13};
  return setup;
}

Experiment vae_setup(Size) {
  Experiment setup = of_kind(ModelKind::vae, DataKind::blobs, LossKind::bce);
  setup.model.vae = {.input_width = 9, .hidden = {7, 5}, .latent = 3, .beta = 2};
  return setup;
}

Experiment pinn_setup(Size) {
  Experiment setup = of_kind(ModelKind::pinn, DataKind::poisson_points, LossKind::poisson);
  setup.model.mlp.activation = Activation::tanh;
  setup.model.pinn = {.width = 13, .layers = 3};
  setup.training.learning_rate = 1e-4;
  return setup;
}

Experiment fno_setup(Size ranks) {
  Experiment setup = of_kind(ModelKind::fno, DataKind::darcy, LossKind::relative_l2);
  setup.model.mlp.activation = Activation::gelu;
  setup.training.learning_rate = 1e-3;
  const Size modes = ranks % 3 == 0 ? 3 : 4;
  setup.model.fno = {
      .grid = 2 * modes + 1, .modes = modes, .width = 3, .layers = 2, .projection = 5};
  return setup;
}

struct ModelCase {
  const char* name;
  Experiment (*setup)(Size ranks);
  bool splits_rows;  ///< with sequence parallelism
};
const std::vector<ModelCase> cases{{"transformer", transformer_setup, true},
                                   {"vae", vae_setup, true},
                                   {"pinn", pinn_setup, false},
                                   {"fno", fno_setup, true}};

class Models : public testing::TestWithParam<ModelCase> {
 protected:
  Experiment setup() const { return GetParam().setup(Communicator::world().size()); }
};

TEST_P(Models, TrainLikeOneRankUnderEveryStrategy) {
  for (const OptimizerKind optimizer : {OptimizerKind::sgd, OptimizerKind::adam}) {
    Experiment base = setup();
    base.training.optimizer.kind = optimizer;
    base.training.check_replicas_every = 1;
    base.training.microbatches = optimizer == OptimizerKind::sgd ? 1 : 3;
    if (optimizer == OptimizerKind::adam) base.training.learning_rate = 0.01;
    for_strategies(base, [&](const Experiment& one, const std::string& what) {
      SCOPED_TRACE(testing::Message() << what << ", " << name_of(optimizer));
      expect_trains_like_its_layers(one);
    });
  }
}

TEST_P(Models, WorkWithRowsOfTheirOwn) {
  if (!GetParam().splits_rows) GTEST_SKIP() << "no layer of it splits rows";
  Experiment base = setup();
  base.training.distributed.sequence_parallel = true;
  for_strategies(base, [&](const Experiment& one, const std::string& what) {
    if (one.training.distributed.mesh_axis_names.back() != "model") return;
    SCOPED_TRACE(what);
    expect_trains_like_its_layers(one);
  });
}

TEST_P(Models, TrainOnAPipelineAndComputeAgain) {
  const Size ranks = Communicator::world().size();
  std::vector<train_test::Axes> meshes;
  if (ranks < 5) meshes.push_back({{"pipeline", ranks}});
  const Size model = ranks == 6 ? 3 : 2;
  if (ranks > 2 && ranks % 2 == 0)
    meshes.push_back({{"pipeline", 2}, {"fsdp", ranks / 2 / model}, {"model", model}});
  for (const train_test::Axes& axes : meshes)
    for (const PipelineSchedule schedule :
         {PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble})
      for (const Size segment : {0, 1, 2}) {
        Experiment one = train_test::on_mesh(setup(), axes, "fsdp");
        one.training.microbatches = 3;
        one.training.distributed.schedule = schedule;
        one.training.activation_checkpointing.units = segment;
        SCOPED_TRACE(testing::Message() << MeshShape(axes).to_string() << ", " << name_of(schedule)
                                        << ", segments of " << segment);
        expect_trains_like_its_layers(one);
      }
}

TEST_P(Models, WarmStepsAllocateNothing) {
  train_test::expect_no_allocation_when_warm<double>(
      train_test::on_mesh(setup(), {{"fsdp", Communicator::world().size()}}, "fsdp"));
}

INSTANTIATE_TEST_SUITE_P(All, Models, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

// Column-parallel logits are never gathered: what ranks exchange of them is three numbers a
// position and rank.
TEST(TransformerTraffic, OfAMeshIsWhatItsLayersNeed) {
  Experiment setup = transformer_setup(2);
  setup.model.transformer = {
      .vocabulary = 11, .context = 5, .width = 4, .heads = 2, .blocks = 1, .inner_width = 6};
  setup.data.samples = setup.training.batch_size = 3;
  setup.training.distributed.strategy = Strategy::data;
  const Config config{setup.model, setup.data, setup.training, {}};
  const Plan plan = make_plan(plan_input(config, MeshShape({{"model", 2}})));
  const Size rows = 3 * 5, real = 8;
  struct Row {
    Operation operation;
    Size calls, bytes;
  };
  // Forward: embedding, proj and fc2 all-reduce (rows, 4); the terms (rows, 6) are gathered.
  // Backward: qkv, fc1 and logits all-reduce the gradients of what they read.
  const std::vector<Row> expected{{Operation::all_reduce, 3, 3 * rows * 4 * real},
                                  {Operation::all_gather, 1, rows * 6 * real},
                                  {Operation::all_reduce, 3, 3 * rows * 4 * real}};
  Size calls = 0, bytes = 0, expected_calls = 0, expected_bytes = 0;
  for (const CollectivePlan& row : plan.collectives(0)) {
    if (row.cadence != Cadence::step) continue;
    EXPECT_EQ(row.axis, "model");
    calls += row.calls;
    bytes += row.payload_bytes;
  }
  for (const Row& row : expected) expected_calls += row.calls, expected_bytes += row.bytes;
  EXPECT_EQ(calls, expected_calls);
  EXPECT_EQ(bytes, expected_bytes);
}

struct StepSums {
  Size calls = 0, bytes = 0;
};

/// What a step on three samples exchanges along model=2, which must be all-reduces only.
StepSums all_reduces_of_three_samples(Experiment setup) {
  setup.data.samples = setup.training.batch_size = 3;
  setup.training.distributed.strategy = Strategy::data;
  const Config config{setup.model, setup.data, setup.training, {}};
  const Plan plan = make_plan(plan_input(config, MeshShape({{"model", 2}})));
  StepSums sums;
  for (const CollectivePlan& row : plan.collectives(0)) {
    if (row.cadence != Cadence::step) continue;
    EXPECT_EQ(row.axis, "model");
    EXPECT_EQ(row.operation, Operation::all_reduce);
    sums.calls += row.calls;
    sums.bytes += row.payload_bytes;
  }
  return sums;
}

// Layers come in pairs: the second one's sums are what ranks exchange, and the gradient between
// pairs. That of x is not wanted.
TEST(PinnTraffic, OfAMeshIsWhatItsLayersNeed) {
  Experiment setup = pinn_setup(2);
  setup.model.pinn = {.width = 4, .layers = 3};
  const Size rows = 3 * 6, real = 8;
  const StepSums sums = all_reduces_of_three_samples(setup);
  // Forward: layer2 (rows, 4) and layer4 (rows, 1). Backward: layer3's input (rows, 4).
  EXPECT_EQ(sums.calls, 3);
  EXPECT_EQ(sums.bytes, (4 + 1 + 4) * rows * real);
}

// R is never gathered, nor are modes: what ranks exchange are sums of fields on the grid.
TEST(FnoTraffic, OfAMeshIsWhatItsLayersNeed) {
  Experiment setup = fno_setup(2);
  setup.model.fno = {.grid = 5, .modes = 2, .width = 2, .layers = 2, .projection = 3};
  const Size rows = 3 * 25, real = 8;
  // Forward: each Fourier layer all-reduces (rows, 2), the output (rows, 1). Backward: the
  // projection and each Fourier layer all-reduce the gradients of what they read, (rows, 2).
  const StepSums sums = all_reduces_of_three_samples(setup);
  EXPECT_EQ(sums.calls, 2 + 1 + 1 + 2);
  EXPECT_EQ(sums.bytes, (2 * 2 + 1 + 2 + 2 * 2) * rows * real);
}

}  // namespace
}  // namespace tessera
