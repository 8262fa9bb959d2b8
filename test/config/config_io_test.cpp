// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include <tessera/base/text.hpp>
#include <tessera/base/toml_value.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/settings.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

using config_test::expect_error;
using config_test::load_text;
using config_test::TemporaryFile;

Config tutorial_file() { return load_config({.file = TESSERA_INPUTS "/tutorial.toml"}); }

TEST(ConfigIo, TutorialFileEqualsTheDefaults) {
  Config defaults = config_test::tutorial();
  defaults.training.distributed.mesh_shape = {-1};
  defaults.training.distributed.mesh_axis_names = {"data"};
  EXPECT_EQ(config_as_toml(tutorial_file()), config_as_toml(defaults));
}

/// Returns values other than the default that the type of the setting allows.
std::vector<nlohmann::json> other_values(const Setting& setting) {
  const nlohmann::json now = setting.get({});
  if (setting.key == "training.activation_checkpointing") return {"full", 3, "cheap", "block"};
  if (setting.key == "distributed.mesh_shape") return {{2, "nodes", "per_node", -1}};
  if (setting.key == "distributed.mesh_rules")
    return {{{"mlp", nlohmann::json::array()}, {"batch", {"data", "fsdp"}}}};
  if (setting.key == "distributed.parameter_specs")
    return {{{"layer1/kernel", "P(None, \"model\")"}}};
  if (setting.key == "distributed.mesh_axis_names") return {{"data", "model"}};
  if (setting.key == "distributed.shard_moments_over") return {{"data", "fsdp"}};
  if (setting.key.ends_with("seed")) return {std::int64_t{9223372036854775807}};
  if (now.is_boolean()) return {!now.get<bool>()};
  if (now.is_number_integer()) return {now.get<Size>() + 3};
  if (now.is_array()) return {{7, 5}};
  if (setting.is_text) return {"a \"text\""};
  if (now.is_string()) {
    std::vector<nlohmann::json> names;
    for (const std::string& name :
         split_text(setting.type.substr(std::string_view("one of").size()), ','))
      names.emplace_back(std::string(trim(name)));
    return names;
  }
  if (now.is_null() && !setting.key.starts_with("clip.")) return {6};
  return {0.1 + 0.2, 1e-300};
}

TEST(ConfigIo, EveryKeySurvivesPrintingAndReading) {
  for (const Setting& setting : settings())
    for (const nlohmann::json& value : other_values(setting)) {
      Config config;
      setting.set(config, value);
      EXPECT_EQ(setting.get(config), value) << setting.key;
      const Config read = load_text(config_as_toml(config));
      for (const Setting& other : settings())
        EXPECT_EQ(other.get(read), other.get(config)) << other.key << " after " << setting.key;
      EXPECT_EQ(config_as_json(read), config_as_json(config));
    }
}

TEST(ConfigIo, PathsMayBeginWithTheHomeDirectory) {
  const std::string home = std::getenv("HOME");
  const Config config = load_text("[checkpoint]\ndirectory = \"~/a\"\n[output]\nmetrics = \"a/~\"",
                                  {.overrides = {"data.file=~/b", "output.hashes=\"~/c\""}});
  EXPECT_EQ(config.checkpoint.directory, home + "/a");
  EXPECT_EQ(config.output.metrics, "a/~");
  EXPECT_EQ(config.data.file, home + "/b");
  EXPECT_EQ(config.output.hashes, home + "/c");
  expect_error([] { load_text("[checkpoint]\ndirectory = \"~other/a\""); },
               {"~other/a: cannot replace ~; write the directory out"});
}

TEST(ConfigIo, JsonLeavesUnsetKeysOut) {
  const nlohmann::json tree = config_as_json(tutorial_file());
  EXPECT_EQ(tree.at("training").at("batch_size"), 32);
  EXPECT_EQ(tree.at("model").at("dtype"), "float32");
  EXPECT_FALSE(tree.at("distributed").contains("world_size"));
}

TEST(ConfigIo, KeysAreUniqueAndDocumented) {
  for (const Setting& a : settings()) {
    EXPECT_FALSE(a.meaning.empty()) << a.key;
    Size same = 0;
    for (const Setting& b : settings()) same += a.key == b.key;
    EXPECT_EQ(same, 1) << a.key;
  }
}

TEST(ConfigIo, EveryoneNeedsTwentyKeys) {
  EXPECT_EQ(std::ranges::count(settings(), Tier::common, &Setting::tier), 20);
  const std::string printed = config_as_toml({});
  // Within a section, keys are in the order of their tiers.
  const std::string training = printed.substr(printed.find("[training]"));
  std::size_t last = 0;
  for (const char* text : {"\nbatch_size =", "\n# Keys for experts\n", "\nvalidate_every =",
                           "\n# Keys for work on Tessera itself\n", "\ncheck_replicas_every ="}) {
    const std::size_t at = training.find(text);
    ASSERT_NE(at, training.npos) << text;
    EXPECT_LT(last, at) << text;
    last = at;
  }
}

/// The page has what table_of_keys() returns; defaults of [comm] depend on build and environment.
TEST(ConfigIo, ThePageOfKeysIsThatOfTheProgram) {
  const auto shown = [](const std::string& page) {
    std::string lines;
    for (const std::string& line : split_text(page, '\n'))
      if (!line.starts_with("| `comm.")) lines += line + "\n";
    return lines.substr(lines.find("\n## "));
  };
  std::ostringstream page;
  page << std::ifstream(TESSERA_INPUTS "/../src/tessera/config/KEYS.md").rdbuf();
  const std::string expected = "\n" + table_of_keys(), file = testing::TempDir() + "KEYS.md";
  std::ofstream(file) << table_of_keys();
  EXPECT_EQ(shown(page.str()), shown(expected)) << "the tables must be those of " << file;
}

TEST(ConfigIo, OverridesWinOverTheFileAndFlagsOverBoth) {
  const std::string text =
      "[training]\nbatch_size = 8\nnum_epochs = 3\n"
      "[distributed]\nworld_size = 2\nmesh_shape = [1, 2]\nmesh_axis_names = ['model', 'data']\n";
  const Config set = load_text(
      text,
      {.overrides = {"training.batch_size=16", "optimizer.kind = adamw", "model.widths=[4, 8, 1]",
                     "distributed.world_size=3", "training.batch_size=64"}});
  EXPECT_EQ(set.training.batch_size, 64);
  EXPECT_EQ(set.training.num_epochs, 3);
  EXPECT_EQ(set.training.optimizer.kind, OptimizerKind::adamw);
  EXPECT_EQ(set.model.mlp.widths, (std::vector<Size>{4, 8, 1}));
  EXPECT_EQ(set.training.distributed.world_size, 3);
  const Config flags = load_text(text, {.overrides = {"distributed.world_size=3"},
                                        .mesh = "data=-1",
                                        .strategy = "data",
                                        .ranks_expected = "4",
                                        .check_collectives = true});
  EXPECT_EQ(flags.training.distributed.world_size, 4);
  EXPECT_EQ(flags.training.distributed.mesh_shape, (std::vector<Size>{-1}));
  EXPECT_EQ(flags.training.distributed.mesh_axis_names, (std::vector<std::string>{"data"}));
  EXPECT_TRUE(flags.comm.check_collectives);
}

TEST(ConfigIo, FilesThatCannotBeRead) {
  expect_error([] { load_config({.file = "/nowhere/x.toml"}); },
               {"/nowhere/x.toml: cannot be read: No such file"});
  expect_error([] { load_config({.file = testing::TempDir()}); },
               {"must be a regular file, not a directory"});
  const TemporaryFile large(std::string((1 << 20) + 1, '\n'));
  expect_error([&] { load_config({.file = large.path()}); }, {"is larger than 1.00 MiB"});
}

TEST(ConfigIo, MalformedDocumentsNameFileAndLine) {
  for (const std::string text : {"[model]\nwidths = [4, 64\n", "\n= 3\n", "a = 1\na = 2",
                                 "[model]\nseed = \x01", "\xff\xfe"}) {
    const TemporaryFile file(text);
    expect_error([&] { load_config({.file = file.path()}); }, {file.path() + ":"});
  }
  const TemporaryFile file("[model]\n\nseed = = 3\n");
  expect_error([&] { load_config({.file = file.path()}); }, {file.path() + ":3: "});
}

// A directory may have the number of a job as its name.
TEST(ConfigIo, TextOnTheCommandLineStaysText) {
  const auto file = [](const std::string& value) {
    const std::string assignment = "data.file=" + value;
    return load_text("", {.overrides = {assignment}}).data.file;
  };
  for (const std::string text :
       {"12345",    "007",    "1_000",   "1e5",   "-3.50", "true",       "false",
        "nan",      "inf",    "-inf",    "0x10",  "0b1",   "2026-11-24", "2026-11-24 06:00:00.5",
        "06:00:00", "[1, 2]", "{a = 1}", "1 # 2", "",      "runs/7",     "a=b",
        "it's"}) {
    EXPECT_EQ(file(text), text);
    EXPECT_EQ(file(to_toml(text)), text) << "in quotes";
  }
  const Config config = load_text("", {.overrides = {"checkpoint.directory = 12345 "}});
  EXPECT_EQ(config.checkpoint.directory, "12345");
  EXPECT_EQ(load_text(config_as_toml(config)).checkpoint.directory, "12345");
  expect_error([] { load_text("[checkpoint]\ndirectory = 12345"); },
               {"checkpoint.directory = 12345: must be a string"});
}

TEST(ConfigIo, NumbersAsToml) {
  EXPECT_EQ(to_toml(1.0), "1.0");
  EXPECT_EQ(to_toml(1e-3), "0.001");
  EXPECT_EQ(to_toml(1e300), "1e+300");
  EXPECT_EQ(to_toml(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(to_toml(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(to_toml("a\n\"b\""), "\"a\\n\\\"b\\\"\"");
}

}  // namespace
}  // namespace tessera
