// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <tessera/config/config_io.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/toml_text.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

using config_test::expect_error;
using config_test::load_text;
using config_test::TemporaryFile;

Config tutorial_file() { return load_config({.file = TESSERA_INPUTS "/tutorial.toml"}); }

TEST(ConfigIo, TutorialFileIsTheTutorial) {
  const Config config = tutorial_file();
  EXPECT_EQ(config.model.mlp.widths, (std::vector<Size>{4, 64, 1}));
  EXPECT_EQ(config.model.mlp.activation, Activation::relu);
  EXPECT_EQ(config.model.mlp.seed, 42u);
  EXPECT_EQ(config.data.kind, DataKind::sum_of_squares);
  EXPECT_EQ(config.data.samples, 256);
  EXPECT_EQ(config.data.seed, 0u);
  EXPECT_EQ(config.training.num_epochs, 20);
  EXPECT_EQ(config.training.batch_size, 32);
  EXPECT_EQ(config.training.learning_rate, 1e-3);
  EXPECT_EQ(config.training.optimizer.kind, OptimizerKind::adam);
  EXPECT_EQ(config.training.distributed.mesh_shape, (std::vector<Size>{-1}));
  for (Size ranks : {1, 2, 3, 4, 8}) validate(config, ranks);
}

TEST(ConfigIo, TutorialFileEqualsTheDefaults) {
  Config defaults = config_test::tutorial();
  defaults.training.distributed.mesh_shape = {-1};
  defaults.training.distributed.mesh_axis_names = {"data"};
  EXPECT_EQ(config_as_toml(tutorial_file()), config_as_toml(defaults));
}

TEST(ConfigIo, LargeFileIsValid) {
  const Config config = load_config({.file = TESSERA_INPUTS "/large.toml"});
  EXPECT_EQ(config.model.mlp.widths, (std::vector<Size>{1024, 4096, 4096, 1024}));
  EXPECT_EQ(config.training.batch_size, 1024);
  for (Size ranks : {1, 2, 3, 8}) validate(config, ranks);
}

TEST(ConfigIo, FilesOfTheShardedStrategiesAreValid) {
  const auto valid = [](const std::string& name, const std::vector<std::string>& meshes) {
    const std::string file = TESSERA_INPUTS "/" + name + ".toml";
    const Config config = load_config({.file = file});
    EXPECT_EQ(config_as_toml(load_text(config_as_toml(config))), config_as_toml(config)) << name;
    validate(config, 4);
    for (const std::string& mesh : meshes)
      validate(load_config({.file = file, .mesh = mesh}), MeshShape(parse_axes(mesh)).num_ranks());
    return config.training.distributed;
  };
  EXPECT_EQ(valid("fsdp", {"fsdp=1", "fsdp=8", "data=2,fsdp=3"}).strategy, "fsdp");
  EXPECT_EQ(valid("hybrid", {"data=1,fsdp=1", "data=3,fsdp=2"}).strategy, "hybrid");
  const DistributedConfig tensor = valid("tensor", {"data=1,model=1", "model=8", "fsdp=2,model=3"});
  EXPECT_TRUE(tensor.sequence_parallel);
  EXPECT_EQ(tensor.mesh_rules.at("mlp"), (std::vector<std::string>{"model"}));
  EXPECT_EQ(tensor.parameter_specs.size(), 1u);
}

TEST(ConfigIo, EveryKeySurvivesPrintingAndReading) {
  Config config = resolve(tutorial_file(), 6);
  config.model.mlp.bias = false;
  config.model.mlp.output_activation = Activation::gelu;
  config.model.mlp.initializer = Initializer::glorot_uniform;
  config.model.dtype = DType::float64;
  config.model.mlp.seed = 9223372036854775807u;
  config.data.kind = DataKind::random;
  config.training.learning_rate = 0.1 + 0.2;
  config.training.loss = LossKind::relative_l2;
  config.training.optimizer = {.kind = OptimizerKind::adamw, .weight_decay = 1e-300};
  config.training.schedule = {.kind = ScheduleKind::cosine, .steps = 7};
  config.training.clip.global_norm = 5;
  config.training.distributed.num_nodes = 2;
  config.training.distributed.overlap = true;
  config.training.distributed.gradient_reduce_type = "sum";
  config.training.distributed.mesh_rules = {{"mlp", {}}, {"batch", {"data", "fsdp"}}};
  config.training.distributed.parameter_specs = {{"layer1/kernel", "P(None, \"model\")"},
                                                 {"layer2/kernel", "P()"}};
  config.training.distributed.prefetch = false;
  config.training.distributed.reshard_after_forward = false;
  config.training.distributed.keep_last_unit = false;
  config.training.distributed.sequence_parallel = true;
  config.training.check_finite = true;
  config.training.check_replicas_every = 10;
  config.comm.timeout_seconds = 1e22;
  const std::string text = config_as_toml(config);
  const Config read = load_text(text);
  EXPECT_EQ(config_as_toml(read), text);
  for (const Setting& setting : settings())
    EXPECT_EQ(setting.get(read), setting.get(config)) << setting.key;
  EXPECT_EQ(config_as_json(read), config_as_json(config));
}

TEST(ConfigIo, JsonLeavesUnsetKeysOut) {
  const nlohmann::json tree = config_as_json(tutorial_file());
  EXPECT_EQ(tree.at("training").at("batch_size"), 32);
  EXPECT_EQ(tree.at("model").at("dtype"), "float32");
  EXPECT_FALSE(tree.at("distributed").contains("world_size"));
}

TEST(ConfigIo, KeysAreUniqueAndDocumented) {
  for (const Setting& a : settings()) {
    EXPECT_FALSE(a.doc.empty()) << a.key;
    Size same = 0;
    for (const Setting& b : settings()) same += a.key == b.key;
    EXPECT_EQ(same, 1) << a.key;
  }
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

TEST(ConfigIo, UnknownKeysNameTheNearest) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[training]\nbatchsize = 3",
       "training.batchsize = 3: is not a known key; did you mean "
       "training.batch_size?"},
      {"[trainig]\nbatch_size = 3",
       "trainig.batch_size = 3: is not a known key; did you mean "
       "training.batch_size?"},
      {"batch_size = 3", "did you mean training.batch_size?"},
      {"[model]\nlearning_rate = 1", "did you mean training.learning_rate?"},
      {"[distributed]\nmesh = [2]", "distributed.mesh = [2]: is not a known key"},
      {"[distributed.mesh_shape]\na = 1", "distributed.mesh_shape.a = 1: is not a known key"},
      {"[[distributed]]\nstrategy = 'data'", "distributed = [{strategy = \"data\"}]"},
      {"zzz = 1", "zzz = 1: is not a known key; tessera run --print-config"},
      {"[modle]", "modle = {}: is not a known key"},
  };
  for (const auto& [text, message] : cases) expect_error([&] { load_text(text); }, {message});
  load_text("[model]\n[distributed]\n");
  load_text("training = {batch_size = 3}");
}

TEST(ConfigIo, LauncherKeysSayWhereTheyComeFrom) {
  for (const char* key : {"rank", "local_rank", "master_port"})
    expect_error([&] { load_text(std::string("[distributed]\n") + key + " = 1"); },
                 {std::string("distributed.") + key + " = 1: is set by the launcher"});
  expect_error([] { load_text("[distributed]\nmaster_addr = '::1'"); },
               {"distributed.master_addr = \"::1\": is set by the launcher"});
}

TEST(ConfigIo, WrongTypes) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"training.batch_size=32.0", "training.batch_size = 32.0: must be an integer"},
      {"training.batch_size=many", "training.batch_size = \"many\": must be an integer"},
      {"training.batch_size=true", "training.batch_size = true: must be an integer"},
      {"training.batch_size=", "training.batch_size = \"\": must be an integer"},
      {"training.batch_size=99999999999999999999", "must be an integer"},
      {"training.learning_rate=NaN", "training.learning_rate = \"NaN\": must be a number"},
      {"training.learning_rate=[1]", "training.learning_rate = [1]: must be a number"},
      {"model.bias=1", "model.bias = 1: must be true or false"},
      {"model.seed=-1", "model.seed = -1: must be an integer from 0"},
      {"model.widths=4", "model.widths = 4: must be a list of integers"},
      {"model.widths=[4, 'a']", "model.widths = [4, \"a\"]: must be a list of integers"},
      {"model.widths=[4, 64", "model.widths = \"[4, 64\": must be a list of integers"},
      {"model.activation=3", "model.activation = 3: must be one of identity, relu"},
      {"distributed.mesh_axis_names=data", "must be a list of strings"},
      {"distributed.world_size=2021-02-03", "distributed.world_size = \"2021-02-03\": must be an"},
      {"distributed.strategy={a=1}", "distributed.strategy = \"{a=1}\": must be one of data"},
  };
  for (const auto& [assignment, message] : cases)
    expect_error([&] { load_text("", {.overrides = {assignment}}); }, {message});
  EXPECT_EQ(load_text("[training]\nlearning_rate = 1").training.learning_rate, 1.0);
}

// The number of a job, for one, is a name of a directory.
TEST(ConfigIo, TextOnTheCommandLineIsTakenAsItStands) {
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
  expect_error([] { load_text("", {.strategy = "5"}); },
               {"distributed.strategy = \"5\": must be one of data"});
}

TEST(ConfigIo, TheTypeOfTheKeySaysWhatIsText) {
  std::vector<std::string> text;
  for (const Setting& setting : settings())
    if (setting.is_text) text.push_back(setting.key);
  EXPECT_EQ(text,
            (std::vector<std::string>{"data.file", "data.x", "data.y", "distributed.backend",
                                      "distributed.strategy", "distributed.gradient_reduce_type",
                                      "distributed.parameter_specs", "checkpoint.directory"}));
  EXPECT_TRUE(is_text("distributed.parameter_specs.layer1/kernel"));
  for (const char* key : {"distributed.parameter_specs", "distributed.mesh_rules.mlp", "model.kind",
                          "training.batch_size", "data.files", "data"})
    EXPECT_FALSE(is_text(key)) << key;
}

TEST(ConfigIo, AssignmentsNeedAKey) {
  for (const char* text : {"training.batch_size", "=3", ""})
    expect_error([&] { load_text("", {.overrides = {text}}); }, {"section.key=value"});
  expect_error([] { load_text("", {.overrides = {"model.dtype=a\nb=1"}}); }, {"model.dtype"});
  expect_error([] { load_text("", {.mesh = "data"}); }, {"mesh = data", "as in data=2"});
  expect_error([] { load_text("", {.ranks_expected = "four"}); },
               {"distributed.world_size = \"four\": must be an integer"});
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
