// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <tessera/config/config_io.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

using config_test::load_text;

using Rules = std::map<std::string, std::vector<std::string>>;
using Specs = std::map<std::string, std::string>;

TEST(ConfigTables, AreReadInEverySpelling) {
  const Rules rules{{"embed", {}}, {"mlp", {"model"}}};
  const Specs specs{{"layer1/kernel", "P(None, 'model')"}, {"layer2/bias", "P()"}};
  for (const char* text : {
           "[distributed.mesh_rules]\nmlp = ['model']\nembed = []\n"
           "[distributed.parameter_specs]\n\"layer1/kernel\" = \"P(None, 'model')\"\n"
           "'layer2/bias' = 'P()'\n",
           "[distributed]\nmesh_rules = {mlp = 'model', embed = []}\n"
           "parameter_specs = {'layer1/kernel' = \"P(None, 'model')\", 'layer2/bias' = 'P()'}\n",
           "distributed.mesh_rules.mlp = 'model'\ndistributed.mesh_rules.embed = []\n"
           "distributed.parameter_specs.\"layer1/kernel\" = \"P(None, 'model')\"\n"
           "distributed.parameter_specs.'layer2/bias' = 'P()'\n",
       }) {
    const DistributedConfig read = load_text(text).training.distributed;
    EXPECT_EQ(read.mesh_rules, rules) << text;
    EXPECT_EQ(read.parameter_specs, specs) << text;
  }
  load_text("[distributed.mesh_rules]\n[distributed.parameter_specs]\n");
}

TEST(ConfigTables, Overrides) {
  const std::string text =
      "[distributed]\nmesh_rules = {mlp = []}\n"
      "[distributed.parameter_specs]\n'layer1/kernel' = 'P(None)'\n";
  const auto with = [&](const std::vector<std::string>& overrides) {
    return load_text(text, {.overrides = overrides}).training.distributed;
  };
  // An entry leaves the others, a table replaces them all.
  EXPECT_EQ(with({"distributed.mesh_rules.batch=[\"data\", \"fsdp\"]"}).mesh_rules,
            (Rules{{"batch", {"data", "fsdp"}}, {"mlp", {}}}));
  for (const char* model :
       {"distributed.mesh_rules.mlp=model", "distributed.mesh_rules.mlp='model'",
        "distributed . mesh_rules . \"mlp\" = ['model']", "distributed.mesh_rules={mlp = 'model'}"})
    EXPECT_EQ(with({model}).mesh_rules, (Rules{{"mlp", {"model"}}})) << model;
  EXPECT_EQ(with({"distributed.mesh_rules={}"}).mesh_rules, Rules{});
  EXPECT_EQ(with({"distributed.mesh_rules={embed=[]}"}).mesh_rules, (Rules{{"embed", {}}}));
  for (const char* spec : {"distributed.parameter_specs.\"layer1/kernel\"=\"P(None, None)\"",
                           "distributed.parameter_specs.'layer1/kernel' = 'P(None, None)'",
                           "distributed.parameter_specs.layer1/kernel=P(None, None)",
                           "distributed.parameter_specs={\"layer1/kernel\" = 'P(None, None)'}"})
    EXPECT_EQ(with({spec}).parameter_specs, (Specs{{"layer1/kernel", "P(None, None)"}})) << spec;
  EXPECT_EQ(with({"distributed.parameter_specs.layer2/kernel=P('model')"}).parameter_specs,
            (Specs{{"layer1/kernel", "P(None)"}, {"layer2/kernel", "P('model')"}}));
}

}  // namespace
}  // namespace tessera
