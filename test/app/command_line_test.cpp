// SPDX-License-Identifier: Apache-2.0
#include <tessera/app/commands.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

using config_test::expect_error;

TEST(CommandLine, RunWithEveryOption) {
  const Command command = parse_command_line(
      {"run", "--set", "model.widths=[4, 8,1]", "a.toml", "--set", "training.num_epochs=2",
       "--mesh", "data=-1", "--strategy", "data", "--ranks-expected", "4", "--json", "r.json",
       "--quiet", "--print-config", "--check-collectives", "--kokkos-num-threads=2"});
  const auto& run = std::get<TrainOptions>(command);
  EXPECT_EQ(run.source.file, "a.toml");
  EXPECT_EQ(run.source.overrides,
            (std::vector<std::string>{"model.widths=[4, 8,1]", "training.num_epochs=2"}));
  EXPECT_EQ(run.source.mesh, "data=-1");
  EXPECT_EQ(run.source.strategy, "data");
  EXPECT_EQ(run.source.ranks_expected, "4");
  EXPECT_EQ(run.json, "r.json");
  EXPECT_TRUE(run.quiet);
  EXPECT_TRUE(run.print_config);
  EXPECT_TRUE(run.source.check_collectives);
}

TEST(CommandLine, NothingIsSetUnlessGiven) {
  const auto run = std::get<TrainOptions>(parse_command_line({"run", "a.toml"}));
  EXPECT_TRUE(run.source.overrides.empty());
  EXPECT_FALSE(run.source.mesh || run.source.strategy || run.source.ranks_expected);
  EXPECT_TRUE(run.json.empty());
  EXPECT_FALSE(run.quiet || run.print_config || run.source.check_collectives);
}

TEST(CommandLine, OtherCommands) {
  const auto plan = std::get<PlanOptions>(parse_command_line({"plan", "--mesh=data=8", "a.toml"}));
  EXPECT_EQ(plan.source.mesh, "data=8");
  EXPECT_TRUE(std::holds_alternative<InfoOptions>(parse_command_line({"info"})));
}

TEST(CommandLine, ResumesFromTheNamedOrLatestCheckpoint) {
  const auto run = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", "a.toml"});
    return std::get<TrainOptions>(parse_command_line(arguments));
  };
  EXPECT_FALSE(run({}).resume || run({}).resume_if_present);
  EXPECT_EQ(run({"--resume"}).resume, "");
  EXPECT_EQ(run({"--resume", "--quiet"}).resume, "");
  EXPECT_EQ(run({"--resume", "b.safetensors"}).resume, "b.safetensors");
  EXPECT_TRUE(run({"--resume-if-present"}).resume_if_present);
  EXPECT_EQ(run({"--until", "100"}).until, 100);
}

TEST(CommandLine, ParsesTheCheckpointCommands) {
  const auto checkpoint = [](const std::vector<std::string>& arguments) {
    return std::get<CheckpointOptions>(parse_command_line(arguments));
  };
  EXPECT_EQ(checkpoint({"checkpoint", "show", "a.safetensors"}).action, CheckpointAction::show);
  EXPECT_EQ(checkpoint({"checkpoint", "verify", "a.safetensors"}).action, CheckpointAction::verify);
  EXPECT_EQ(checkpoint({"checkpoint", "verify", "a.safetensors"}).file, "a.safetensors");
  const CheckpointOptions exported =
      checkpoint({"checkpoint", "export", "a.safetensors", "--format", "safetensors", "--names",
                  "pytorch", "-o", "b"});
  EXPECT_EQ(exported.action, CheckpointAction::save_as);
  EXPECT_EQ(exported.names, "pytorch");
  EXPECT_EQ(exported.to, "b");
}

TEST(CommandLine, HelpAndVersion) {
  const auto text = [](const std::vector<std::string>& arguments) {
    return std::get<ShowText>(parse_command_line(arguments)).text;
  };
  EXPECT_NE(text({"--help"}).find("Examples:"), std::string::npos);
  EXPECT_NE(text({"run", "--help"}).find("--check-collectives"), std::string::npos);
  EXPECT_NE(text({"run", "--help"}).find("hybrid"), std::string::npos);
  EXPECT_EQ(text({"plan", "--help"}).find("--check-collectives"), std::string::npos);
  EXPECT_EQ(text({"plan", "--help"}).find("--live"), std::string::npos);
  EXPECT_EQ(text({"plan", "--help"}).find("tessera run inputs"), std::string::npos);
  EXPECT_EQ(text({"--version"}).find("tessera "), 0u);
  // The types and ranges that CLI11 would add to the names of values.
  for (const char* command : {"run", "plan", "checkpoint", "diff", "info"})
    for (const char* added : {" in [", ":INT", ":UINT", ":FLOAT", "TEXT"})
      EXPECT_EQ(text({command, "--help"}).find(added), std::string::npos) << command << added;
}

TEST(CommandLine, UsageErrorsAreOneLine) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "run, plan, checkpoint, diff or info"},
      {{"fly"}, "fly"},
      {{"train", "a.toml"}, "did you mean run?"},
      {{"rnu", "a.toml"}, "did you mean run?"},
      {{"a.toml"}, "did you mean run a.toml?"},
      {{"checkpoint", "shwo", "a.safetensors"}, "did you mean show?"},
      {{"run", "a.toml", "--lr", "0.1"}, "did you mean --set training.learning_rate=VALUE?"},
      {{"run", "a.toml", "--batch-size=8"}, "did you mean --set training.batch_size=VALUE?"},
      {{"run", "a.toml", "--tp=2"}, "did you mean --set distributed.tensor_parallel_size=VALUE?"},
      {{"run", "a.toml", "--zero3"}, "did you mean --set distributed.strategy=fsdp?"},
      {{"run", "a.toml", "--dp", "2"}, "did you mean --mesh data=N?"},
      {{"run", "a.toml", "--stategy", "data"}, "did you mean --strategy?"},
      {{"run"}, "FILE"},
      {{"run", "a.toml", "b.toml"}, "b.toml"},
      {{"run", "a.toml", "--sett", "a=1"}, "--sett"},
      {{"run", "a.toml", "--set"}, "--set"},
      {{"run", "a.toml", "--mesh"}, "--mesh"},
      {{"plan", "a.toml", "--quiet"}, "--quiet"},
      {{"plan", "a.toml", "--kokkos-num-threads=2"}, "--kokkos-"},
      {{"run", "a.toml", "--mesh", "data=1", "--mesh", "data=2"}, "--mesh"},
      {{"inspect", "a.toml"}, "did you mean plan?"},
      {{"plan", "--live", "a.toml"}, "--live"},
      {{"checkpoint", "export", "a.safetensors", "--format", "npz"}, "scripts/npz.py"},
      {{"info", "x"}, "x"},
      {{"run", "a.toml", "--resume", "a.safetensors", "--resume-if-present"}, "--resume"},
      {{"run", "a.toml", "--until"}, "--until"},
      {{"run", "a.toml", "--until", "06:00"}, "--until"},
      {{"checkpoint"}, "subcommand"},
      {{"checkpoint", "show"}, "FILE"},
      {{"checkpoint", "verify", "a.safetensors", "--kokkos-num-threads=2"}, "--kokkos-"},
      {{"run", "a.toml", "plan", "b.toml"}, "plan"},
  };
  for (const auto& [arguments, part] : cases)
    expect_error([&] { parse_command_line(arguments); }, {part, "tessera --help"});
}

}  // namespace
}  // namespace tessera
