// SPDX-License-Identifier: Apache-2.0
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

using config_test::expect_error;

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

void refuse_rule(const std::string& name, const std::vector<std::string>& axes,
                 const std::vector<std::string>& parts) {
  expect_error([&] { validate(with_rule(name, axes), 8); }, parts);
}

void refuse_spec(const std::string& path, const std::string& spec,
                 const std::vector<std::string>& parts) {
  expect_error([&] { validate(with_spec(path, spec), 8); }, parts);
}

PlanInput input_of(const Config& config) {
  validate(config, 8);
  return plan_input(config, resolve_mesh(config, 8));
}

TEST(ShardingRules, RulesReplaceTheDefaultOfTheirName) {
  EXPECT_EQ(input_of(sharded()).rules.rules(), default_rules().rules());
  EXPECT_TRUE(input_of(with_rule("mlp", {})).rules.axes_of("mlp").empty());
  Config rows_first = with_rule("mlp", {});
  rows_first.training.distributed.mesh_rules["embed"] = {"model"};
  const MeshRules rules = input_of(rows_first).rules;
  EXPECT_EQ(rules.axes_of("embed"), (std::vector<std::string>{"model"}));
  EXPECT_TRUE(rules.axes_of("mlp").empty());
  EXPECT_EQ(rules.axes_of("batch"), (std::vector<std::string>{"data", "fsdp"}));
}

TEST(ShardingRules, UnknownNames) {
  refuse_rule("mpl", {"model"},
              {"distributed.mesh_rules.mpl = [\"model\"]: the name must be one of batch, embed, "
               "heads, mlp, modes, vocab",
               "did you mean mlp?"});
  refuse_rule("mlp", {"modle"},
              {"distributed.mesh_rules.mlp = [\"modle\"]: \"modle\" must be one of pipeline, data, "
               "fsdp, model; did you mean model?"});
  refuse_rule("embed", {""}, {"distributed.mesh_rules.embed = [\"\"]: \"\" must be one of"});
}

TEST(ShardingRules, AxesOfParameters) {
  for (const char* name : {"mlp", "embed"})
    for (const char* axis : {"data", "fsdp", "pipeline"})
      refuse_rule(name, {axis},
                  {std::string("distributed.mesh_rules.") + name, "may name only the axis model"});
  refuse_rule("mlp", {"model", "fsdp"}, {"may name only the axis model"});
  refuse_rule("mlp", {"model", "model"}, {"mesh_rules.mlp", "must not name an axis twice"});
  refuse_rule(
      "embed", {"model"},
      {"distributed.mesh_rules.embed = [\"model\"]: needs distributed.mesh_rules.mlp = []"});
}

TEST(ShardingRules, EveryBatchAxisSplitsTheBatch) {
  refuse_rule(
      "batch", {"data"},
      {"distributed.mesh_rules.batch = [\"data\"]: must name fsdp", "data=2,fsdp=2,model=2"});
  refuse_rule("batch", {"fsdp"}, {"must name data"});
  refuse_rule("batch", {}, {"distributed.mesh_rules.batch = []: must name data"});
  refuse_rule("batch", {"data", "fsdp", "model"}, {"may name only data and fsdp"});
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
}

TEST(ShardingRules, WrongSpecs) {
  const std::string key = "distributed.parameter_specs.\"layer1/kernel\" = ";
  for (const char* spec : {"", "model", "P(None", "\n"})
    refuse_spec("layer1/kernel", spec, {key, "must be a PartitionSpec such as P(None, 'model')"});
  refuse_spec("layer1/kernel", "P('data', None)", {key, "may name only the axis model"});
  refuse_spec("layer1/kernel", "P('model', 'model')", {key, "may name the axis model only once"});
  refuse_spec("layer1/bias", "P(None, None)",
              {"\"layer1/bias\"", "must be no longer than the 1 dimension of the tensor"});
}

TEST(ShardingRules, UnknownParameters) {
  refuse_spec("layer1/kernal", "P()",
              {"distributed.parameter_specs.\"layer1/kernal\" = \"P()\": is not a parameter of the "
               "model; did you mean \"layer1/kernel\"?"});
  refuse_spec("zz", "P()", {"it has layer1/kernel, layer1/bias", "layer3/bias"});
}

TEST(ShardingRules, SpecsNeedTheirAxis) {
  const auto on_data_only = [](Config config) {
    config.training.distributed.mesh_shape = {8};
    config.training.distributed.mesh_axis_names = {"data"};
    return config;
  };
  expect_error([&] { validate(on_data_only(with_spec("layer1/kernel", "P(None, 'model')")), 8); },
               {"needs a mesh axis model; the mesh is data=8"});
  validate(on_data_only(with_spec("layer1/kernel", "P(None, None)")), 8);
}

}  // namespace
}  // namespace tessera
