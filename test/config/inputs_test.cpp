// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <map>
#include <string>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/predict/machine_file.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

constexpr Size most_ranks = 8;

/// A file of inputs/ that is no study.
struct Input {
  std::string name, first_line;
  Config config;
};

std::vector<Input> shipped_inputs() {
  std::vector<Input> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(TESSERA_INPUTS)) {
    if (entry.path().extension() != ".toml") continue;
    const std::string text = read_text(entry.path());
    if (text.find("\n[[grid]]") != std::string::npos) continue;
    inputs.push_back({entry.path().stem(), text.substr(0, text.find('\n')),
                      load_config({.file = entry.path()})});
  }
  return inputs;
}

/// The numbers of ranks that a file asks for on its first line: "on a multiple of 4 ranks", "on 64
/// ranks", or any.
struct AskedRanks {
  Size ranks = 1;
  bool or_multiples = true;

  explicit AskedRanks(const std::string& line) {
    const std::size_t end = line.find(" ranks");
    std::size_t begin = end;
    while (begin != std::string::npos && begin > 0 && line[begin - 1] >= '0' &&
           line[begin - 1] <= '9')
      --begin;
    if (begin == end) return;
    ranks = std::stoll(line.substr(begin, end - begin));
    or_multiples = line.substr(0, begin).ends_with("n a multiple of ");
  }
  bool include(Size number) const { return or_multiples ? number % ranks == 0 : number == ranks; }
};

/// Returns the error of planning it on that many ranks, or "".
std::string problem_of(const Config& config, Size ranks) {
  try {
    validate(config, ranks);
    make_plan(plan_input(config, resolve_mesh(config, ranks)));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Inputs, RunOnTheRanksThatTheirFirstLineNames) {
  const std::vector<Input> inputs = shipped_inputs();
  EXPECT_GE(inputs.size(), 15U);
  std::size_t anywhere = 0;
  for (const Input& input : inputs) {
    SCOPED_TRACE(input.name + ": " + input.first_line);
    const AskedRanks asked(input.first_line);
    anywhere += asked.include(1);
    for (Size ranks = 1; ranks <= most_ranks; ++ranks)
      EXPECT_EQ(problem_of(input.config, ranks).empty(), asked.include(ranks))
          << "on " << ranks << " ranks: " << problem_of(input.config, ranks);
    EXPECT_EQ(problem_of(input.config, asked.ranks), "");
    EXPECT_EQ(problem_of(input.config, 2 * asked.ranks).empty(), asked.or_multiples);
  }
  EXPECT_GE(anywhere, 10U) << "most files are for any launch";
}

/// Returns the bytes of rank 0 in a step, by axis. Scalars are left out.
std::string bytes_by_axis(const Plan& plan) {
  std::map<std::string, Size> bytes;
  for (const LedgerRow& row : step_traffic(plan)) bytes[row.axis] += row.payload_bytes;
  std::string text;
  for (const auto& [axis, sum] : bytes)
    if (sum >= 1 << 20)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", axis, human_bytes(sum));
  return text;
}

// The table of nn/README. The numbers of parameters are those of the published weights; memory and
// bytes are for a GPU, so that they do not depend on this build.
TEST(Inputs, OfPublishedModelsAreAsNnReadmeSays) {
  const std::string readme = read_text(TESSERA_INPUTS "/../src/tessera/nn/README.md");
  const DeviceTraits gpu = load_machine(TESSERA_INPUTS "/machines/gpu_cluster.toml").traits();
  const auto expect_row = [&](const std::string& input, Size parameters, ConfigSource source = {}) {
    source.file = TESSERA_INPUTS "/" + input + ".toml";
    const Config config = load_config(source);
    const MeshShape mesh = resolve_mesh(config, planned_ranks(config));
    const Plan plan = make_plan(plan_input(config, mesh, gpu));
    EXPECT_EQ(plan.input.model.num_parameters(), parameters) << input;
    const std::string row = fmt::format(
        "\n| `{}` | {} | `{}` | {} | {} |\n", input, with_thousands(parameters), mesh.to_string(),
        human_bytes(largest_memory(plan).memory.total()), bytes_by_axis(plan));
    EXPECT_NE(readme.find(row), std::string::npos) << "nn/README lacks the row" << row;
  };
  expect_row("llama3_8b", 8'030'261'248);
  expect_row("llama3_70b", 70'553'706'496);
  expect_row("llama3_405b", 405'853'388'800);
  expect_row("llama3_405b", 405'853'388'800,
             {.overrides = {"model.transformer.context=131072", "training.batch_size=128"},
              .mesh = "pipeline=16,fsdp=8,context=16,model=8"});
  expect_row("mixtral_8x7b", 46'702'792'704);
  // 12 L h^2 (1 + 13 / (12 h) + (V + T) / (12 L h)) with h = 12,288 (Narayanan et al. 2021), and
  // the scale and bias of the last norm.
  expect_row("gpt3_175b", 174'615'822'336 + 2 * 12'288);
}

}  // namespace
}  // namespace tessera
