// SPDX-License-Identifier: Apache-2.0
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

/// Three layers on data=2,fsdp=2,model=2.
Config sharded() {
  Config config;
  config.model.mlp.widths = {4, 64, 64, 1};
  config.training.distributed.mesh_shape = {2, 2, 2};
  config.training.distributed.mesh_axis_names = {"data", "fsdp", "model"};
  return config;
}

Config with_rule(const std::string& name, const std::vector<std::string>& axes) {
  Config config = sharded();
  config.training.distributed.mesh_rules[name] = axes;
  return config;
}

Config with_spec(const std::string& path, const std::string& spec) {
  Config config = sharded();
  config.training.distributed.parameter_specs[path] = spec;
  return config;
}

PlanInput input_of(const Config& config) {
  validate(config, 8);
  return plan_input(config, resolve_mesh(config, 8));
}

TEST(ShardingRules, RulesReplaceTheDefaultOfTheirName) {
  EXPECT_EQ(input_of(sharded()).rules, default_rules());
  EXPECT_TRUE(input_of(with_rule("mlp", {})).rules.at("mlp").empty());
  Config rows_first = with_rule("mlp", {});
  rows_first.training.distributed.mesh_rules["embed"] = {"model"};
  const MeshRules rules = input_of(rows_first).rules;
  EXPECT_EQ(rules.at("embed"), (std::vector<std::string>{"model"}));
  EXPECT_TRUE(rules.at("mlp").empty());
  EXPECT_EQ(rules.at("batch"), (std::vector<std::string>{"data", "fsdp", "expert"}));
}

TEST(ShardingRules, AxesOfParameters) {
  for (const char* name : {"mlp", "embed"})
    for (const char* axis : {"data", "fsdp", "pipeline"})
      config_test::expect_error(
          [&] { validate(with_rule(name, {axis}), 8); },
          {std::string("distributed.mesh_rules.") + name, "may name only the axis model"});
}

TEST(ShardingRules, EveryBatchAxisSplitsTheBatch) {
  validate(with_rule("batch", {"fsdp", "data"}), 8);
  Config only_data = with_rule("batch", {"data"});
  only_data.training.distributed.mesh_shape = {8};
  only_data.training.distributed.mesh_axis_names = {"data"};
  validate(only_data, 8);
}

TEST(ShardingRules, SpecsAreParsed) {
  const PlanInput input = input_of(with_spec("layer2/kernel", " PartitionSpec( 'model' , None ) "));
  ASSERT_EQ(input.parameter_specs.size(), 1u);
  EXPECT_EQ(input.parameter_specs.at("layer2/kernel"), (PartitionSpec{{"model"}, {}}));
  for (const char* spec : {"P()", "P(None)", "P('model')", "P(None, \"model\")", "P(('model',))"})
    validate(with_spec("layer1/kernel", spec), 8);
  validate(with_spec("layer3/bias", "P('model')"), 8);
  Config without_axis = with_spec("layer1/kernel", "P(None, None)");
  without_axis.training.distributed.mesh_shape = {8};
  without_axis.training.distributed.mesh_axis_names = {"data"};
  validate(without_axis, 8);
}

}  // namespace
}  // namespace tessera
