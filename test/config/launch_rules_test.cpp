// SPDX-License-Identifier: Apache-2.0
// Rules between a configuration and its launch: ranks, nodes and their processes.
#include <tessera/config/config_rules.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

using config_test::expect_error;
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
