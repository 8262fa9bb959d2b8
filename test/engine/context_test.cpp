// SPDX-License-Identifier: Apache-2.0
// A transformer whose sequences are split along `context` trains like its layers on one rank.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/resume_support.hpp"
#include "engine/context_support.hpp"

namespace tessera {
namespace {

using train_test::expect_trains_like_its_layers;
using train_test::Experiment;
using train_test::on_mesh;
using train_test::Split;

Experiment sequences(Size positions, Size heads) {
  Experiment setup =
      train_test::of_kind(ModelKind::transformer, DataKind::copy_task, LossKind::cross_entropy);
  setup.model.mlp.activation = Activation::gelu;
  setup.model.transformer = {.vocabulary = 11,
                             .context = positions,
                             .width = 2 * heads,
                             .heads = heads,
                             .blocks = 2,
                             .inner_width = 13};
  return setup;
}

/// Calls f(setup, text) for the meshes of this launch, every way of attention, and both shares.
template <class F>
void for_splits(Size positions, const F& f) {
  const Size ranks = Communicator::world().size();
  for (const Split& split : train_test::context_splits(ranks))
    for (const ContextAttention attention :
         {ContextAttention::gather, ContextAttention::ring, ContextAttention::all_to_all})
      for (const bool zigzag : {true, false}) {
        Experiment setup =
            on_mesh(sequences(positions, ranks == 3 ? 6 : 8), split.axes, split.strategy);
        setup.training.distributed.context_attention = attention;
        setup.training.distributed.zigzag = zigzag;
        f(setup, fmt::format("{} on {}, {}{}", split.strategy, MeshShape(split.axes).to_string(),
                             name_of(attention), zigzag ? ", zigzag" : ""));
      }
}

// 7 positions are uneven shares, and some of 8 ranks have none.
TEST(Context, TrainsLikeOneRank) {
  for (const Size positions : {7, 16})
    for_splits(positions, [](Experiment setup, const std::string& what) {
      SCOPED_TRACE(what);
      setup.training.microbatches = 2;
      setup.training.check_replicas_every = 1;
      expect_trains_like_its_layers(setup);
    });
}

TEST(Context, TrainsLikeOneRankWithRecomputationAndIgnoredTargets) {
  for_splits(7, [](Experiment setup, const std::string& what) {
    SCOPED_TRACE(what);
    setup.training.activation_checkpointing.units = 2;
    setup.training.ignore_index = 0;
    if (setup.training.distributed.mesh_axis_names.back() == "model")
      setup.training.distributed.sequence_parallel = true;
    expect_trains_like_its_layers(setup);
  });
}

// Blocks of attention are larger than the shares of 4 ranks and smaller than those of 1.
TEST(Context, TrainsLikeOneRankOnLongSequences) {
  for_splits(150, [](Experiment setup, const std::string& what) {
    SCOPED_TRACE(what);
    setup.model.transformer.blocks = 1;
    setup.training.num_epochs = 1;
    setup.training.batch_size = setup.data.samples = 3;
    expect_trains_like_its_layers(setup);
  });
}

TEST(Context, PredictsEveryPosition) {
  for_splits(7, [](const Experiment& setup, const std::string& what) {
    SCOPED_TRACE(what);
    Experiment whole = setup;
    whole.training.distributed = {};
    whole = on_mesh(whole, {{"data", Communicator::world().size()}}, "data");
    const auto predict = [](const Experiment& one) {
      Trainer<double> trainer = train_test::trainer_of<double>(one);
      trainer.fit(one.data);
      return train_test::to_host(trainer.predict(train_test::samples_of<double>(one).x));
    };
    EXPECT_LE(train_test::relative_difference(predict(setup), predict(whole)), 1e-11);
  });
}

TEST(Context, CheckpointsGoToMeshesWithAndWithoutTheAxis) {
  using namespace checkpoint_test;
  const Size ranks = Communicator::world().size();
  for (const auto& [saves, resumes] : {std::pair{"context", "data"}, {"fsdp", "context"}}) {
    const auto on_axis = [&](const char* axis) {
      return on_mesh(sequences(7, 6), {{axis, ranks}}, axis[0] == 'f' ? "fsdp" : "data");
    };
    const SharedDirectory directory;
    const End whole = run<double>(
        on_axis(saves), {.config = {.directory = directory.path(), .every_steps = 1, .keep = 0}});
    const End rest = run<double>(on_axis(resumes), {}, file_of(directory, 2));
    EXPECT_LE(relative_difference(rest.parameters, whole.parameters), 1e-11) << resumes;
  }
}

TEST(Context, WarmStepsAllocateNothing) {
  for_splits(7, [](const Experiment& setup, const std::string& what) {
    SCOPED_TRACE(what);
    train_test::expect_no_allocation_when_warm<double>(setup);
  });
}

}  // namespace
}  // namespace tessera
