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

TEST(Verbs, ShardBatchSplitsTheRows) {
  const Communicator world = Communicator::world();
  const Mesh mesh = create_data_parallel_mesh(world);
  EXPECT_EQ(mesh.shape(), MeshShape({{"data", world.size()}}));
  for (const Size rows : {32, 7, 1, 0}) {
    const ArrayState<float> batch{{"x", counting({rows, 4})}};
    const Range mine = balanced_split(rows, world.size(), world.rank());
    const auto sharded = shard_batch(batch, mesh).at("x");
    EXPECT_EQ(sharded.piece().extent, (Shape{mine.count, 4}));
    EXPECT_EQ(sharded.local().data(), batch.at("x").values.data() + mine.begin * 4)
        << "a copy was made";
    EXPECT_EQ(to_host(to_global(sharded)), to_host(batch.at("x").values));
    EXPECT_EQ(shard_batch(batch, create_data_parallel_sharding(mesh)).at("x").piece(),
              sharded.piece());
  }
  // Every axis that splits data splits the rows.
  const Mesh two = create_device_mesh(
      world, {{"data", -1}, {"fsdp", world.size() % 2 == 0 ? 2 : 1}, {"model", 1}});
  const auto sharded = shard_batch(
      ArrayState<float>{{"inputs", counting({13, 2})}, {"targets", counting({13})}}, two);
  const Placements rows{Placement::shard(0), Placement::shard(0), Placement::replicate()};
  EXPECT_EQ(sharded.at("targets").placements(), rows);
  EXPECT_EQ(sharded.at("inputs").piece().offset[0], sharded.at("targets").piece().offset[0]);
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
  for (const auto& [path, tensor] : sharded)
    EXPECT_EQ(to_host(to_global(tensor)), to_host(state.at(path).values));
  const auto by_path = shard_model_state(
      state, mesh, {{"layer1/kernel", P{{}, {"model"}}}, {"layer2/kernel", P{{"model"}, {}}}});
  EXPECT_EQ(by_path.at("layer1/kernel").placements()[1], Placement::shard(1));
  EXPECT_EQ(by_path.at("layer2/kernel").placements()[1], Placement::shard(0));
  EXPECT_EQ(by_path.at("layer1/bias").placements(), replicated(mesh.shape()));
}

/// Rank r of the data axis holds r + 1 times the values.
const std::vector<double> kValues = {1, -2, 3, 0.5, 8};
ShardedState<double> gradients(const Mesh& mesh) {
  std::vector<double> mine;
  for (const double v : kValues)
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
  const auto ranks = static_cast<double>(mesh.axis("data").size());
  const ShardedState<double> mine = gradients(mesh);
  const auto before = to_host(mine.at("w").local());
  world.ledger().reset();
  const auto sum = to_host(all_reduce_gradients(mine, "sum").at("w").local());
  if (ranks > 1) {
    EXPECT_EQ(world.ledger().rows(),
              (std::vector<LedgerRow>{{"data", Operation::all_reduce, 1, 40}}));
  }
  EXPECT_EQ(to_host(mine.at("w").local()), before) << "the caller's gradients were overwritten";
  const auto mean = to_host(all_reduce_gradients(gradients(mesh)).at("w").local());
  for (std::size_t i = 0; i < kValues.size(); ++i) {
    EXPECT_DOUBLE_EQ(sum[i], kValues[i] * ranks * (ranks + 1) / 2);
    EXPECT_DOUBLE_EQ(mean[i], kValues[i] * (ranks + 1) / 2);
  }
}

TEST(Verbs, RejectWrongNames) {
  const Communicator world = Communicator::world();
  const Mesh mesh = data_by_model(world), model = create_data_parallel_mesh(world, "model");
  const ArrayState<float> state = model_state();
  EXPECT_NE(error_of([&] { create_device_mesh(world, {{"data", world.size() + 1}}); }), "");
  EXPECT_NE(error_of([&] {
              shard_array<float>(state.at("layer1/bias"), {mesh, P{{"modle"}}});
            }),
            "");
  EXPECT_EQ(error_of([&] { shard_model_state(state, mesh, "split"); }),
            "param_sharding = split: must be replicate, shard or a map from paths to specs");
  EXPECT_EQ(error_of([&] {
              shard_model_state(state, mesh, {{"layer1/kernal", P{{"data"}}}});
            }),
            "param_sharding = layer1/kernal: must be the path of a parameter (nearest: "
            "layer1/kernel)");
  EXPECT_NE(error_of([&] { shard_model_state(state, model, "shard"); }), "");
  EXPECT_EQ(error_of([&] { all_reduce_gradients(gradients(mesh), "max"); }),
            "reduce_type = max: must be one of mean, sum");
  EXPECT_NE(error_of([&] { all_reduce_gradients(gradients(mesh), "mean", "dat"); }), "");
  EXPECT_NE(error_of([&] {
              all_reduce_gradients(replicate(state, mesh));
            }).find("must be Partial along 'data'"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
