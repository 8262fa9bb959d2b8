// SPDX-License-Identifier: Apache-2.0
// A Fourier neural operator whose grid is split along `context` trains like its layers on one rank.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/resume_support.hpp"
#include "engine/context_support.hpp"
#include "engine/precision_support.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::on_mesh;

/// Returns an operator whose modes 2, 3, 4 and 8 ranks divide, on a grid of 2 modes + `more` points
/// along each dimension.
Experiment grid_fields(Size more) {
  Experiment setup = train_test::of_kind(ModelKind::fno, DataKind::darcy, LossKind::relative_l2);
  const Size modes = Communicator::world().size() % 3 == 0 ? 3 : 2;
  setup.model.mlp.activation = Activation::gelu;
  setup.model.fno = {
      .grid = 2 * modes + more, .modes = modes, .width = 3, .layers = 2, .projection = 5};
  setup.training.learning_rate = 1e-2;
  return setup;
}

/// Calls f(setup, text) for the meshes of this launch and both shares.
template <class F>
void for_grid_splits(const Experiment& base, const F& f) {
  for (const train_test::Split& split : train_test::context_splits(Communicator::world().size()))
    for (const bool zigzag : {true, false}) {
      Experiment setup = on_mesh(base, split.axes, split.strategy);
      setup.training.distributed.zigzag = zigzag;
      f(setup, fmt::format("{} on {}{}", split.strategy, MeshShape(split.axes).to_string(),
                           zigzag ? ", zigzag" : ""));
    }
}

// With 1 and 3 more points, shares are uneven and cut rows of the grid.
TEST(ContextFno, TrainsLikeOneRank) {
  for (const Size more : {0, 1, 3})
    for_grid_splits(grid_fields(more), [&](Experiment setup, const std::string& what) {
      SCOPED_TRACE(testing::Message() << what << ", " << setup.model.fno.grid << " points");
      setup.training.loss = std::array{LossKind::mse, LossKind::relative_l2, LossKind::relative_l2,
                                       LossKind::mae}[static_cast<std::size_t>(more)];
      setup.training.microbatches = more == 0 ? 1 : 2;
      setup.training.check_replicas_every = 1;
      train_test::expect_trains_like_its_layers(setup);
    });
}

TEST(ContextFno, TrainsLikeOneRankWithRecomputation) {
  for_grid_splits(grid_fields(1), [](Experiment setup, const std::string& what) {
    SCOPED_TRACE(what);
    setup.training.activation_checkpointing.units = 1;
    if (setup.training.distributed.mesh_axis_names.back() == "model")
      setup.training.distributed.sequence_parallel = true;
    train_test::expect_trains_like_its_layers(setup);
  });
}

template <class T>
class ContextFnoIn : public testing::Test {};
using ShortTypes = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(ContextFnoIn, ShortTypes);

// The transforms of a part of the grid round other values between their products than those of the
// whole grid, so both are compared with a training that does not round.
TYPED_TEST(ContextFnoIn, RoundsNoMoreThanOneRank) {
  Experiment base = grid_fields(1);
  const train_test::ShortTraining exact = train_test::train_alone<double>(base);
  base.model.dtype = DType::float32;
  const train_test::ShortTraining alone = train_test::train_alone<TypeParam>(base);
  for_grid_splits(train_test::in_precision<TypeParam>(base), [&](const Experiment& setup,
                                                                 const std::string& what) {
    SCOPED_TRACE(what);
    const train_test::ShortTraining trained = train_test::train_short<TypeParam>(setup);
    const auto expect_close = [&](auto member) {
      const double error = train_test::relative_difference(alone.*member, exact.*member);
      EXPECT_LE(train_test::relative_difference(trained.*member, exact.*member),
                2 * std::max(error, train_test::roundoff<TypeParam>));
    };
    expect_close(&train_test::ShortTraining::losses);
    expect_close(&train_test::ShortTraining::parameters);
    EXPECT_EQ(trained.skipped_steps, alone.skipped_steps);
  });
}

TEST(ContextFno, PredictsEveryPoint) {
  for_grid_splits(grid_fields(1), [](const Experiment& setup, const std::string& what) {
    SCOPED_TRACE(what);
    const auto predict = [](const Experiment& one) {
      Trainer<double> trainer = train_test::trainer_of<double>(one);
      trainer.fit(one.data);
      return train_test::to_host(trainer.predict(train_test::samples_of<double>(one).x));
    };
    Experiment whole = setup;
    whole.training.distributed = {};
    whole = on_mesh(whole, {{"data", Communicator::world().size()}}, "data");
    EXPECT_LE(train_test::relative_difference(predict(setup), predict(whole)), 1e-11);
  });
}

TEST(ContextFno, CheckpointsGoToMeshesWithAndWithoutTheAxis) {
  using namespace checkpoint_test;
  for (const auto& [saves, resumes] : {std::pair{"context", "data"}, {"fsdp", "context"}}) {
    const auto on_axis = [&](const char* axis) {
      return on_mesh(grid_fields(1), {{axis, Communicator::world().size()}},
                     axis[0] == 'f' ? "fsdp" : "data");
    };
    const SharedDirectory directory;
    const End whole = run<double>(
        on_axis(saves), {.config = {.directory = directory.path(), .every_steps = 1, .keep = 0}});
    const End rest = run<double>(on_axis(resumes), {}, file_of(directory, 2));
    EXPECT_LE(relative_difference(rest.parameters, whole.parameters), 1e-11) << resumes;
  }
}

TEST(ContextFno, WarmStepsAllocateNothing) {
  for_grid_splits(grid_fields(1), [](const Experiment& setup, const std::string& what) {
    SCOPED_TRACE(what);
    train_test::expect_no_allocation_when_warm<double>(setup);
  });
}

}  // namespace
}  // namespace tessera
