// SPDX-License-Identifier: Apache-2.0
// The mesh of a configuration, with names or from sizes.
#include <tessera/config/config_rules.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

using config_test::expect_error;
using config_test::load_text;
using config_test::refuse_distributed;
using config_test::tutorial;

TEST(MeshRules, MeshLists) {
  refuse_distributed([](auto& d) { d.mesh_axis_names = {"data"}; },
                     {"distributed.mesh_axis_names = [\"data\"]", "needs distributed.mesh_shape"});
  refuse_distributed([](auto& d) { d.mesh_shape = {4}; },
                     {"distributed.mesh_axis_names = []", "distributed.mesh_shape = [4]"});
  refuse_distributed(
      [](auto& d) {
        d.mesh_shape = {2, 2};
        d.mesh_axis_names = {"data"};
      },
      {"distributed.mesh_axis_names = [\"data\"]", "distributed.mesh_shape = [2, 2]"});
  refuse_distributed(
      [](auto& d) {
        d.mesh_shape = {2, 2};
        d.mesh_axis_names = {"data", "data"};
      },
      {"distributed.mesh_shape = [2, 2]", "unique", "data"});
  refuse_distributed(
      [](auto& d) {
        d.mesh_shape = {4};
        d.mesh_axis_names = {"batch"};
      },
      {"distributed.mesh_axis_names = [\"batch\"]", "must be one of pipeline, data, fsdp, model"});
}

TEST(MeshRules, MeshSizes) {
  const std::vector<std::pair<MeshSizes, std::string>> wrong{
      {{0}, "[0]: sizes must be positive or one -1"},
      {{3}, "[3]: the sizes multiply to 3, which does not match the 4 ranks"}};
  for (const auto& [sizes, message] : wrong)
    refuse_distributed(
        [&](auto& d) {
          d.mesh_shape = sizes;
          d.mesh_axis_names = {"data"};
        },
        {"distributed.mesh_shape = " + message});
}

TEST(MeshRules, ParallelSizesAgreeWithTheMesh) {
  refuse_distributed(
      [](auto& d) {
        d.mesh_shape = {4};
        d.mesh_axis_names = {"data"};
        d.tensor_parallel_size = 2;
      },
      {"distributed.tensor_parallel_size = 2", "\"model\", which is 1"});
  refuse_distributed(
      [](auto& d) {
        d.mesh_shape = {2, 2};
        d.mesh_axis_names = {"pipeline", "data"};
        d.pipeline_parallel_size = 1;
      },
      {"distributed.pipeline_parallel_size = 1", "\"pipeline\", which is 2"});
  refuse_distributed([](auto& d) { d.pipeline_parallel_size = 3; },
                     {"distributed.tensor_parallel_size = 1",
                      "times distributed.pipeline_parallel_size = 3 must divide"});
}

TEST(MeshRules, ResolvedMeshes) {
  Config config = tutorial();
  EXPECT_EQ(resolve_mesh(config, 4).to_string(), "data=4");
  EXPECT_EQ(resolve_mesh(config, 1).to_string(), "data=1");
  DistributedConfig& distributed = config.training.distributed;
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
  expect_error([&] { validate(config, 6); },
               {"distributed.mesh_shape = [\"nodes\", \"per_node\"]", "known only in a launch"});
  for (const char* wrong : {"['node']", "'nodes'", "[1.5]", "[-9223372036854775808]"})
    expect_error(
        [&] { config_test::load_text(std::string("[distributed]\nmesh_shape = ") + wrong); },
        {"distributed.mesh_shape = ", "must be a list of integers, \"nodes\" and \"per_node\""});
}

// A group that shards stays inside a node, behind the axis model.
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
