// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/plan/plan.hpp>

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

}  // namespace
}  // namespace tessera
