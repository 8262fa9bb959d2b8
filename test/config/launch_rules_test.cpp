// SPDX-License-Identifier: Apache-2.0
// Rules between a configuration and its launch: ranks, nodes and their processes.
#include <tessera/config/config_rules.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

using config_test::expect_error;
using config_test::refuse;
using config_test::refuse_distributed;
using config_test::tutorial;

TEST(LaunchRules, NodesAreThoseOfTheLaunch) {
  const Topology even = Topology::blocks(4, 2), uneven = Topology::blocks(3, 2);
  DistributedConfig config;
  check_nodes(config, uneven);
  config.num_nodes = 2;
  check_nodes(config, even);
  check_nodes(config, uneven);
  expect_error([&] { check_nodes(config, Topology::blocks(4, 4)); },
               {"distributed.num_nodes = 2: must equal the number of nodes of this launch, 1"});
  config.num_processes_per_node = 2;
  check_nodes(config, even);
  expect_error(
      [&] { check_nodes(config, uneven); },
      {"distributed.num_processes_per_node = 2: must equal the number of ranks on every node, "
       "but this launch has 1 on node 2 of 2"});
}

TEST(LaunchRules, LaunchSizes) {
  refuse_distributed([](auto& d) { d.world_size = 8; },
                     {"distributed.world_size = 8", "the number of ranks, 4"});
  refuse_distributed(
      [](auto& d) {
        d.world_size = 4;
        d.num_nodes = 2;
        d.num_processes_per_node = 3;
      },
      {"distributed.num_nodes = 2", "num_processes_per_node = 3", "distributed.world_size, 4"});
  refuse_distributed(
      [](auto& d) {
        d.num_nodes = 2;
        d.num_processes_per_node = 3;
      },
      {"distributed.num_nodes = 2", "num_processes_per_node = 3", "the number of ranks, 4"});
  refuse_distributed([](auto& d) { d.num_nodes = 3; },
                     {"distributed.num_nodes = 3", "must divide the number of ranks, 4"});
  refuse_distributed([](auto& d) { d.num_processes_per_node = 3; },
                     {"distributed.num_processes_per_node = 3", "must divide", "4"});
  refuse_distributed([](auto& d) { d.num_nodes = d.num_processes_per_node = Size{1} << 62; },
                     {"distributed.num_nodes = 4611686018427387904"});
  refuse_distributed([](auto& d) { d.tensor_parallel_size = 3; },
                     {"distributed.tensor_parallel_size = 3", "pipeline_parallel_size = 1",
                      "must divide the number of ranks, 4"});
  refuse_distributed(
      [](auto& d) { d.tensor_parallel_size = d.pipeline_parallel_size = Size{1} << 40; },
      {"distributed.tensor_parallel_size", "must divide"});
}

TEST(LaunchRules, NumberOfRanks) {
  for (Size ranks : {Size{0}, Size{-4}, Size{1} << 31})
    refuse([](Config&) {}, {"ranks = " + std::to_string(ranks), "must be from 1"}, ranks);
}

TEST(LaunchRules, PlannedRanks) {
  Config config = tutorial();
  DistributedConfig& distributed = config.training.distributed;
  EXPECT_EQ(planned_ranks(config), 1);
  distributed.tensor_parallel_size = 3;
  EXPECT_EQ(planned_ranks(config), 3);
  distributed.mesh_shape = {-1};
  EXPECT_EQ(planned_ranks(config), 1);
  distributed.mesh_shape = {4, 2};
  EXPECT_EQ(planned_ranks(config), 8);
  distributed.num_nodes = 5;
  distributed.num_processes_per_node = 5;
  EXPECT_EQ(planned_ranks(config), 25);
  distributed.world_size = 7;
  EXPECT_EQ(planned_ranks(config), 7);
}

TEST(LaunchRules, PlannedNodes) {
  Config config = tutorial();
  DistributedConfig& distributed = config.training.distributed;
  const auto nodes = [&] { return planned_topology(config).ranks_by_node(); };
  EXPECT_FALSE(planned_topology(config).is_known());
  distributed.mesh_shape = {8};
  distributed.num_nodes = 2;
  EXPECT_EQ(nodes(), (std::vector<Size>{4, 4}));
  distributed.num_nodes.reset();
  distributed.num_processes_per_node = 2;
  EXPECT_EQ(nodes(), (std::vector<Size>{2, 2, 2, 2}));
  distributed.mesh_shape = {size_nodes, size_per_node};
  distributed.mesh_axis_names = {"data", "fsdp"};
  distributed.num_nodes = 3;
  EXPECT_EQ(nodes(), (std::vector<Size>{2, 2, 2}));
  EXPECT_EQ(resolve_mesh(config, planned_topology(config)).to_string(), "data=3,fsdp=2");
  EXPECT_EQ(resolve(config, planned_topology(config)).training.distributed.mesh_shape,
            (std::vector<Size>{3, 2}));
  distributed.num_nodes.reset();
  distributed.mesh_shape = {Size{1} << 40, 1};
  EXPECT_FALSE(planned_topology(config).is_known());
}

}  // namespace
}  // namespace tessera
