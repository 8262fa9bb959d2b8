// SPDX-License-Identifier: Apache-2.0
// The mesh of a configuration, with names or from sizes.
#include <tessera/config/config_rules.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

using config_test::expect_error;
using config_test::tutorial;

TEST(MeshRules, ResolvedMeshes) {
  Config config = tutorial();
  EXPECT_EQ(resolve_mesh(config, 4).to_string(), "data=4");
  EXPECT_EQ(resolve_mesh(config, 1).to_string(), "data=1");
  DistributedConfig& distributed = config.training.distributed;
  distributed.tensor_parallel_size = 2;
  EXPECT_EQ(resolve_mesh(config, 8).to_string(), "data=4,model=2");
  distributed.pipeline_parallel_size = 2;
  EXPECT_EQ(resolve_mesh(config, 8).to_string(), "pipeline=2,data=2,model=2");
  distributed.pipeline_parallel_size = 4;
  distributed.tensor_parallel_size.reset();
  EXPECT_EQ(resolve_mesh(config, 4).to_string(), "pipeline=4");
  distributed.pipeline_parallel_size.reset();
  distributed.mesh_shape = {1, -1};
  distributed.mesh_axis_names = {"model", "data"};
  EXPECT_EQ(resolve_mesh(config, 6).to_string(), "model=1,data=6");
  distributed.mesh_shape = {2, -1};  // the rest of the ranks, not all of them
  distributed.mesh_axis_names = {"data", "model"};
  EXPECT_EQ(resolve_mesh(config, 2).to_string(), "data=2,model=1");
  distributed.mesh_shape = {2, 3, 4};
  distributed.mesh_axis_names = {"model", "fsdp", "data"};
  EXPECT_EQ(resolve_mesh(config, 24).to_string(), "model=2,fsdp=3,data=4");
}

TEST(MeshRules, ResolvingFillsInTheLaunchAndIsIdempotent) {
  const Config once = resolve(tutorial(), 6);
  EXPECT_EQ(once.training.distributed.world_size, 6);
  EXPECT_EQ(once.training.distributed.mesh_shape, (std::vector<Size>{6}));
  EXPECT_EQ(once.training.distributed.mesh_axis_names, (std::vector<std::string>{"data"}));
  EXPECT_EQ(config_as_toml(resolve(once, 6)), config_as_toml(once));
  expect_error([&] { resolve(once, 4); }, {"distributed.world_size = 6"});
}

TEST(MeshRules, MeshSizesOfTheNodes) {
  Config config = config_test::load_text(
      "[model]\nwidths = [4, 64, 1]\n"
      "[distributed]\nmesh_shape = ['nodes', 'per_node']\nmesh_axis_names = ['data', 'fsdp']");
  EXPECT_EQ(resolve_mesh(config, Topology::blocks(6, 2)).to_string(), "data=3,fsdp=2");
  const std::string text = config_as_toml(config);
  EXPECT_NE(text.find("mesh_shape = [\"nodes\", \"per_node\"]"), std::string::npos);
  EXPECT_EQ(config_as_toml(config_test::load_text(text)), text);
}

// The axis fsdp takes the ranks of a node that the axis model leaves.
TEST(MeshRules, MeshOfHybridFromTheNodes) {
  Config config = tutorial();
  DistributedConfig& distributed = config.training.distributed;
  distributed.strategy = Strategy::hybrid;
  const auto mesh = [&](Size ranks, Size per_node) {
    return resolve_mesh(config, Topology::blocks(ranks, per_node)).to_string();
  };
  EXPECT_EQ(mesh(8, 4), "data=2,fsdp=4");
  EXPECT_EQ(mesh(4, 4), "fsdp=4");
  distributed.tensor_parallel_size = 2;
  EXPECT_EQ(mesh(8, 4), "data=2,fsdp=2,model=2");
  distributed.pipeline_parallel_size = 2;
  EXPECT_EQ(mesh(8, 4), "pipeline=2,fsdp=2,model=2");
  EXPECT_EQ(mesh(16, 4), "pipeline=2,data=2,fsdp=2,model=2");
}

}  // namespace
}  // namespace tessera
