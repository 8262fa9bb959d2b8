// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include <gtest/gtest.h>

#include <tessera/tensor/redistribute.hpp>
#include <tessera/tensor/verbs.hpp>

#include "device_data.hpp"
#include "expect_error.hpp"

namespace tessera {
namespace {

using test::error_of;
using test::to_device;
using test::to_host;
using P = PartitionSpec;

Array<float> counting(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(num_elements(shape)));
  std::iota(values.begin(), values.end(), 1.F);
  return {to_device(values), shape};
}

/// The tutorial's model.
ArrayState<float> model_state() {
  return {{"layer1/kernel", counting({4, 64})},
          {"layer1/bias", counting({64})},
          {"layer2/kernel", counting({64, 1})},
          {"layer2/bias", counting({1})}};
}

Mesh data_by_model(const Communicator& world) {
  return create_device_mesh(world, {{"data", -1}, {"model", world.size() % 2 == 0 ? 2 : 1}});
}

TEST(Verbs, CreateMeshes) {
  const Communicator world = Communicator::world();
  EXPECT_EQ(create_data_parallel_mesh(world).shape(), MeshShape({{"data", world.size()}}));
  EXPECT_EQ(data_by_model(world).shape().num_ranks(), world.size());
  EXPECT_NE(error_of([&] { create_device_mesh(world, {{"data", world.size() + 1}}); }), "");
}

TEST(Verbs, ShardBatchSplitsTheRows) {
  const Communicator world = Communicator::world();
  const Mesh mesh = create_data_parallel_mesh(world);
  for (const Size rows : {32, 7, 1, 0}) {
    const Array<float> batch = counting({rows, 4});
    const Range mine = balanced_split(rows, world.size(), world.rank());
    const auto sharded = shard_batch(batch, mesh);
    EXPECT_EQ(sharded.piece().extent, (Shape{mine.count, 4}));
    EXPECT_EQ(sharded.local().data(), batch.values.data() + mine.begin * 4) << "a copy was made";
    EXPECT_EQ(to_host(to_global(sharded)), to_host(batch.values));
    EXPECT_EQ(shard_batch(batch, create_data_parallel_sharding(mesh)).piece(), sharded.piece());
  }
}

TEST(Verbs, ShardBatchUsesEveryAxisThatSplitsData) {
  const Communicator world = Communicator::world();
  const Mesh mesh = create_device_mesh(
      world, {{"data", -1}, {"fsdp", world.size() % 2 == 0 ? 2 : 1}, {"model", 1}});
  const ArrayState<float> batch = {{"inputs", counting({13, 2})}, {"targets", counting({13})}};
  const ShardedState<float> sharded = shard_batch(batch, mesh);
  Size rows = 0;
  for (Size r = 0; r < world.size(); ++r) {
    rows += piece({13}, cuts_of(sharded.at("targets").placements()), mesh.shape(), r).extent[0];
  }
  EXPECT_EQ(rows, 13);
  EXPECT_EQ(sharded.at("inputs").piece().offset[0], sharded.at("targets").piece().offset[0]);
}

TEST(Verbs, ShardArrayAndReplicate) {
  const Communicator world = Communicator::world();
  const Mesh mesh = data_by_model(world);
  const Array<float> kernel = counting({4, 7});
  const auto columns = shard_array<float>(kernel, {mesh, P{{}, {"model"}}});
  EXPECT_EQ(columns.piece().extent[1],
            balanced_split(7, mesh.axis("model").size(), mesh.axis("model").rank()).count);
  EXPECT_EQ(to_host(to_global(columns)), to_host(kernel.values));
  EXPECT_EQ(replicate(kernel, mesh).local().data(), kernel.values.data());
  EXPECT_NE(error_of([&] { shard_array<float>(kernel, {mesh, P{{"modle"}}}); }), "");
}

TEST(Verbs, ShardModelState) {
  const Communicator world = Communicator::world();
  const Mesh mesh = data_by_model(world);
  const ArrayState<float> state = model_state();
  for (const auto& [path, tensor] : shard_model_state(state, mesh)) {
    EXPECT_EQ(tensor.placements(), replicated(mesh.shape()));
    EXPECT_EQ(tensor.local().data(), state.at(path).values.data());
  }
  const auto sharded = shard_model_state(state, mesh, "shard");
  EXPECT_EQ(sharded.at("layer1/kernel").placements()[0], Placement::shard(1));
  EXPECT_EQ(sharded.at("layer2/kernel").placements()[0], Placement::shard(0));
  for (const auto& [path, tensor] : sharded) {
    EXPECT_EQ(to_host(to_global(tensor)), to_host(state.at(path).values));
  }
  const auto by_path = shard_model_state(
      state, mesh, {{"layer1/kernel", P{{}, {"model"}}}, {"layer2/kernel", P{{"model"}, {}}}});
  EXPECT_EQ(by_path.at("layer1/kernel").placements()[1], Placement::shard(1));
  EXPECT_EQ(by_path.at("layer2/kernel").placements()[1], Placement::shard(0));
  EXPECT_EQ(by_path.at("layer1/bias").placements(), replicated(mesh.shape()));
}

TEST(Verbs, ShardModelStateRejectsUnknownWordsAndPaths) {
  const Communicator world = Communicator::world();
  const Mesh mesh = data_by_model(world);
  EXPECT_EQ(error_of([&] { shard_model_state(model_state(), mesh, "split"); }),
            "param_sharding = split: must be replicate, shard or a map from paths to specs");
  EXPECT_EQ(error_of([&] {
              shard_model_state(model_state(), mesh, {{"layer1/kernal", P{{"data"}}}});
            }),
            "param_sharding = layer1/kernal: must be the path of a parameter (nearest: "
            "layer1/kernel)");
  const Mesh model_only = create_data_parallel_mesh(world, "model");
  EXPECT_NE(error_of([&] { shard_model_state(model_state(), model_only, "shard"); }), "");
}

/// Rank r of the data axis holds r + 1 times the values.
ShardedState<double> gradients(const Mesh& mesh) {
  const std::vector<double> values = {1, -2, 3, 0.5, 8};
  std::vector<double> mine;
  for (const double v : values)
    mine.push_back(v * static_cast<double>(mesh.axis("data").rank() + 1));
  Placements placements = replicated(mesh.shape());
  placements[*mesh.shape().find("data")] = Placement::partial();
  ShardedState<double> state;
  state.emplace("w", ShardedTensor<double>(mesh, {5}, placements, to_device(mine)));
  return state;
}

// A sum in place of a mean is wrong by the size of the axis; Adam would hide that.
TEST(Verbs, AllReduceGradientsSumsOrAverages) {
  const Communicator world = Communicator::world();
  const Mesh mesh = data_by_model(world);
  const double ranks = static_cast<double>(mesh.axis("data").size());
  const double factor_sum = ranks * (ranks + 1) / 2;
  world.ledger().reset();
  const auto sum = to_host(all_reduce_gradients(gradients(mesh), "sum").at("w").local());
  if (ranks > 1) {
    EXPECT_EQ(world.ledger().rows(),
              (std::vector<LedgerRow>{{"data", Operation::all_reduce, 1, 40}}));
  }
  const auto mean = to_host(all_reduce_gradients(gradients(mesh)).at("w").local());
  const std::vector<double> values = {1, -2, 3, 0.5, 8};
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_DOUBLE_EQ(sum[i], values[i] * factor_sum);
    EXPECT_DOUBLE_EQ(mean[i], values[i] * factor_sum / ranks);
  }
}

TEST(Verbs, AllReduceGradientsLeavesTheCallersGradientsAlone) {
  const Communicator world = Communicator::world();
  const Mesh mesh = create_data_parallel_mesh(world);
  const ShardedState<double> mine = gradients(mesh);
  const auto before = to_host(mine.at("w").local());
  const auto reduced = all_reduce_gradients(mine, "mean");
  EXPECT_EQ(to_host(mine.at("w").local()), before);
}

TEST(Verbs, AllReduceGradientsRejectsOtherReductions) {
  const Communicator world = Communicator::world();
  const Mesh mesh = create_data_parallel_mesh(world);
  EXPECT_EQ(error_of([&] { all_reduce_gradients(gradients(mesh), "max"); }),
            "reduce_type = max: must be one of mean, sum");
  EXPECT_NE(error_of([&] { all_reduce_gradients(gradients(mesh), "mean", "dat"); }), "");
  const ShardedState<float> whole = replicate(model_state(), mesh);
  EXPECT_NE(error_of([&] { all_reduce_gradients(whole); }).find("must be Partial along 'data'"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
