// SPDX-License-Identifier: Apache-2.0
// The table outcomes.txt: what is rejected, with its message, what is accepted, and which mesh
// follows.
#include <tessera/base/text.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/plan/plan.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

/// A launch of the configuration that overrides make.
struct TableCase {
  ConfigSource source{};
  Size ranks = 1, per_node = 0;

  void add(const std::string& overrides) {
    for (const std::string& item : split_text(overrides, ';')) {
      const std::string given(trim(item)), value = given.substr(given.find('=') + 1);
      if (given.starts_with("ranks="))
        ranks = std::stoll(value);
      else if (given.starts_with("per_node="))
        per_node = std::stoll(value);
      else if (given.starts_with("mesh="))
        source.mesh = value;
      else if (given.starts_with("strategy="))
        source.strategy = value;
      else if (!given.empty())
        source.overrides.push_back(given);
    }
  }
  /// Makes its plan. Returns its mesh.
  std::string run() const {
    const Config config = config_test::load_text("", source);
    const Topology topology = per_node > 0 ? Topology::blocks(ranks, per_node) : Topology(ranks);
    validate(config, topology);
    const MeshShape mesh = resolve_mesh(config, topology);
    make_plan(plan_input(config, mesh));
    return mesh.to_string();
  }
};

std::vector<std::string> parts_between(std::string text, const std::string& separator) {
  std::vector<std::string> parts;
  for (std::size_t at; (at = text.find(separator)) != std::string::npos;
       text = text.substr(at + separator.size()))
    parts.push_back(text.substr(0, at));
  parts.push_back(text);
  return parts;
}

void expect_outcome(const std::string& base, const std::string& overrides,
                    const std::string& outcome) {
  SCOPED_TRACE(overrides);
  TableCase launch;
  launch.add(base);
  launch.add(overrides);
  if (outcome == "ok")
    EXPECT_NO_THROW(launch.run());
  else if (outcome.starts_with("mesh ") && outcome.find(": ") == std::string::npos)
    EXPECT_EQ(launch.run(), outcome.substr(5));
  else
    config_test::expect_error([&] { launch.run(); }, parts_between(outcome, " ... "));
}

/// Checks a case for each choice in its places <a|b>.
void check_case(const std::string& base, const std::string& overrides, std::string outcome,
                int place = 1) {
  const std::size_t open = overrides.find('<'), close = overrides.find('>', open);
  if (open == std::string::npos) return expect_outcome(base, overrides, outcome);
  for (const std::string& item : split_text(overrides.substr(open + 1, close - open - 1), '|')) {
    const std::string choice(trim(item)), number = "$" + std::to_string(place);
    std::string text = outcome;
    for (std::size_t at; (at = text.find(number)) != std::string::npos;)
      text.replace(at, number.size(), choice);
    check_case(base, overrides.substr(0, open) + choice + overrides.substr(close + 1), text,
               place + 1);
  }
}

/// Returns the lines, each with its indented ones, without comments.
std::vector<std::string> lines_of_table() {
  std::vector<std::string> lines;
  for (const std::string& line :
       split_text(read_text(TESSERA_INPUTS "/../test/config/outcomes.txt"), '\n')) {
    if (line.starts_with("    "))
      lines.back() += " " + std::string(trim(line));
    else if (!line.empty() && !line.starts_with('#'))
      lines.push_back(line);
  }
  return lines;
}

TEST(Outcomes, AreThoseOfTheTable) {
  std::string base;
  Size cases = 0;
  for (const std::string& line : lines_of_table()) {
    if (line.starts_with('[')) {
      base = line.substr(1, line.size() - 2);
      continue;
    }
    const std::size_t arrow = line.find(" =>");
    ASSERT_NE(arrow, std::string::npos) << line;
    check_case(base, line.substr(0, arrow), std::string(trim(line.substr(arrow + 3))));
    ++cases;
  }
  EXPECT_GT(cases, 200);
}

}  // namespace
}  // namespace tessera
