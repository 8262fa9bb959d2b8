// SPDX-License-Identifier: Apache-2.0
// Every model but the MLP under every strategy trains like its layers on one rank (SerialModel).
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/serial_training.hpp"

namespace tessera {
namespace {

using train_test::expect_trains_like_its_layers;
using train_test::Experiment;
using train_test::for_strategies;
using train_test::of_kind;

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

Experiment experts_setup(Size ranks) {
  Experiment setup = transformer_setup(ranks);
  TransformerConfig& model = setup.model.transformer;
  model.experts = ranks == 8 || ranks == 4 ? ranks : 6;
  model.top_k = 2;
  model.capacity_factor = 1;
  model.balance_loss = 0.3;
  model.router_z_loss = 0.1;
  return setup;
}

Experiment vae_setup(Size) { return train_test::small_vae(); }

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

Experiment residual_mlp_setup(Size) {
  Experiment setup = of_kind(ModelKind::residual_mlp, DataKind::random, LossKind::mse);
  setup.model.mlp.activation = Activation::tanh;
  setup.model.residual_mlp = {3, 11, 13, 2, 2};
  setup.training.learning_rate = 0.01;
  return setup;
}

struct ModelCase {
  const char* name;
  Experiment (*setup)(Size ranks);
  bool splits_rows;  ///< sequence parallelism splits rows of some layer
};
const std::vector<ModelCase> cases{{"transformer", transformer_setup, true},
                                   {"experts", experts_setup, true},
                                   {"vae", vae_setup, true},
                                   {"pinn", pinn_setup, false},
                                   {"fno", fno_setup, true},
                                   {"residual_mlp", residual_mlp_setup, true}};

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

TEST_P(Models, TrainLikeOneRankWithSplitRows) {
  if (!GetParam().splits_rows) GTEST_SKIP() << "no layer of this model splits rows";
  Experiment base = setup();
  base.training.distributed.sequence_parallel = true;
  for_strategies(base, [&](const Experiment& one, const std::string& what) {
    if (one.training.distributed.mesh_axis_names.back() != "model") return;
    SCOPED_TRACE(what);
    expect_trains_like_its_layers(one);
  });
}

TEST_P(Models, TrainLikeOneRankOnAPipelineWithRecomputation) {
  const Size ranks = Communicator::world().size();
  std::vector<train_test::Axes> meshes;
  if (ranks < 5) meshes.push_back({{"pipeline", ranks}});
  const Size model = ranks == 6 ? 3 : 2;
  if (ranks > 2 && ranks % 2 == 0)
    meshes.push_back({{"pipeline", 2}, {"fsdp", ranks / 2 / model}, {"model", model}});
  for (const train_test::Axes& axes : meshes)
    for (const PipelineSchedule schedule :
         {PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble})
      for (const Size segment : {0, 1, 3}) {
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

}  // namespace
}  // namespace tessera
