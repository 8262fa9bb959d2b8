// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/io/hdf5_array.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/plan_text.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

using config_test::expect_error;
using config_test::refuse;
using config_test::tutorial;

/// Values that a file cannot give.
TEST(ConfigRules, NumbersThatAreNoEnumerators) {
  refuse([](Config& c) { c.training.distributed.strategy = static_cast<Strategy>(9); },
         {"distributed.strategy = 9: must be one of data"});
  refuse([](Config& c) { c.model.dtype = DType::int32; },
         {"model.dtype", "must be one of float32, float64"});
  refuse([](Config& c) { c.model.mlp.activation = static_cast<Activation>(99); },
         {"model.activation = 99", "must be one of identity, relu, tanh, sigmoid, gelu"});
  refuse([](Config& c) { c.model.mlp.seed = static_cast<std::uint64_t>(-1); },
         {"model.seed", "2^63 - 1"});
}

TEST(ConfigRules, PlansNeedNoFiles) {
  Config config = tutorial();
  config.data = {.kind = DataKind::hdf5, .file = "/nowhere/f.h5", .x = "x", .y = "y"};
  if (has_hdf5()) return validate(config, 4);
  refuse([&](Config& c) { c.data = config.data; },
         {"data.kind = \"hdf5\": needs a program that was built with HDF5"});
}

TEST(ConfigRules, NodesAreThoseOfTheLaunch) {
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

TEST(ConfigRules, RanksAndNodesOfPlans) {
  Config config = tutorial();
  DistributedConfig& distributed = config.training.distributed;
  const auto nodes = [&] { return planned_topology(config).ranks_by_node(); };
  EXPECT_EQ(planned_ranks(config), 1);
  EXPECT_FALSE(planned_topology(config).is_known());
  distributed.tensor_parallel_size = 3;
  distributed.pipeline_parallel_size = 2;
  EXPECT_EQ(planned_ranks(config), 6);
  distributed.mesh_shape = {-1};
  EXPECT_EQ(planned_ranks(config), 1);
  distributed.mesh_shape = {4, 2};
  EXPECT_EQ(planned_ranks(config), 8);
  distributed.num_nodes = 2;
  EXPECT_EQ(nodes(), (std::vector<Size>{4, 4}));
  distributed.num_nodes.reset();
  distributed.num_processes_per_node = 2;
  EXPECT_EQ(nodes(), (std::vector<Size>{2, 2, 2, 2}));
  distributed.mesh_shape = {size_nodes, size_per_node};
  distributed.num_nodes = 3;
  EXPECT_EQ(nodes(), (std::vector<Size>{2, 2, 2}));
  distributed.num_nodes.reset();
  distributed.mesh_shape = {Size{1} << 40, 1};
  EXPECT_FALSE(planned_topology(config).is_known());
  distributed.num_nodes = distributed.num_processes_per_node = 5;
  EXPECT_EQ(planned_ranks(config), 25);
  distributed.world_size = 7;
  EXPECT_EQ(planned_ranks(config), 7);
}

TEST(ConfigRules, ResolvingFillsInTheLaunchAndIsIdempotent) {
  const Config once = resolve(tutorial(), 6);
  EXPECT_EQ(once.training.distributed.world_size, 6);
  EXPECT_EQ(once.training.distributed.mesh_shape, (std::vector<Size>{6}));
  EXPECT_EQ(once.training.distributed.mesh_axis_names, (std::vector<std::string>{"data"}));
  EXPECT_EQ(config_as_toml(resolve(once, 6)), config_as_toml(once));
  expect_error([&] { resolve(once, 4); }, {"distributed.world_size = 6"});
}

/// The tutorial on this mesh of 8 ranks.
Config on(const std::vector<Size>& sizes, const std::vector<std::string>& names) {
  Config config = tutorial();
  config.training.distributed.mesh_shape = sizes;
  config.training.distributed.mesh_axis_names = names;
  return config;
}

TEST(ConfigRules, RulesAndSpecsReachThePlan) {
  Config config = on({2, 2, 2}, {"data", "fsdp", "model"});
  const auto input = [&] {
    validate(config, 8);
    return plan_input(config, resolve_mesh(config, 8));
  };
  EXPECT_EQ(input().rules, default_rules());
  config.training.distributed.mesh_rules = {{"mlp", {}}, {"embed", {"model"}}};
  config.training.distributed.parameter_specs["layer2/kernel"] =
      " PartitionSpec( 'model' , None ) ";
  const MeshRules rules = input().rules;
  EXPECT_EQ(rules.at("embed"), (std::vector<std::string>{"model"}));
  EXPECT_TRUE(rules.at("mlp").empty());
  EXPECT_EQ(rules.at("batch"), (std::vector<std::string>{"data", "fsdp", "expert"}));
  ASSERT_EQ(input().parameter_specs.size(), 1u);
  EXPECT_EQ(input().parameter_specs.at("layer2/kernel"), (PartitionSpec{{"model"}, {}}));
}

// One file serves all meshes: without an axis model, sequence parallelism changes nothing.
TEST(ConfigRules, SequenceParallelGoesWithEveryMesh) {
  for (const Strategy strategy :
       {Strategy::data, Strategy::zero2, Strategy::fsdp, Strategy::hybrid})
    for (Config config : {on({2, 4}, {"data", "fsdp"}), on({2, 4, 1}, {"data", "fsdp", "model"})}) {
      config.training.distributed.strategy = strategy;
      const auto plan = [&] {
        validate(config, 8);
        return to_json(make_plan(plan_input(config, resolve_mesh(config, 8))), 8, PlanParts::all());
      };
      const nlohmann::json without = plan();
      config.training.distributed.sequence_parallel = true;
      EXPECT_EQ(plan(), without) << name_of(strategy);
    }
}

}  // namespace
}  // namespace tessera
