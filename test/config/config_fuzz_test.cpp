// SPDX-License-Identifier: Apache-2.0
#include <random>
#include <sstream>

#include <tessera/config/config_rules.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/toml_text.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

std::string text_of(const std::string& input) {
  std::ostringstream text;
  text << std::ifstream(TESSERA_INPUTS "/" + input + ".toml").rdbuf();
  return text.str();
}

/// Makes one random edit: replaces a byte, erases or copies a piece, or inserts a TOML word.
std::string mutate(std::string text, std::mt19937& random) {
  static const std::vector<std::string> words{
      "-1", "nan",        "[",    "]",  "\"",   "1e999", "9223372036854775807",
      "[[", "{a=1}",      "\n",   "=",  ".",    "false", "[]",
      "-",  "1979-05-27", "true", "''", "\xff", "[a]",   "0"};
  if (text.empty()) return words[random() % words.size()];
  const std::size_t at = random() % text.size();
  const std::size_t length = random() % 12;
  switch (random() % 4) {
    case 0:
      text[at] = static_cast<char>(random() % 256);
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(random() % text.size(), text.substr(at, length));
      break;
    default:
      text.replace(at, length, words[random() % words.size()]);
      break;
  }
  return text;
}

/// Counts accepted and refused inputs. Checks that every refusal is one line with exit code 1.
struct Tally {
  Size accepted = 0;
  Size refused = 0;

  template <class F>
  void count(const F& accept) {
    try {
      accept();
      ++accepted;
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.code(), ExitCode::usage) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
  void expect_both(Size least) const {
    EXPECT_GT(accepted, least);
    EXPECT_GT(refused, least);
  }
};

/// Reads a configuration, validates it and checks that its printed form reads back.
void accept(const std::string& text, Size ranks) {
  const Config config = config_test::load_text(text);
  validate(config, ranks);
  const std::string printed = config_as_toml(config);
  EXPECT_EQ(config_as_toml(config_test::load_text(printed)), printed);
}

/// Reads mutations of the file, which is valid on `ranks` ranks.
void read_mutations(const std::string& input, Size ranks) {
  SCOPED_TRACE(input);
  std::mt19937 random(7);
  const std::string original = text_of(input);
  ASSERT_FALSE(original.empty());
  Tally tally;
  for (int trial = 0; trial < 1000; ++trial) {
    std::string text = original;
    for (std::size_t edits = 1 + random() % 4; edits > 0; --edits) text = mutate(text, random);
    tally.count([&] { accept(text, ranks); });
  }
  tally.expect_both(50);
}

TEST(ConfigFuzz, MutatedFilesAreReadOrRefused) {
  read_mutations("tutorial", 2);
  read_mutations("tensor", 4);
}

/// Returns the value that the setting must have after this assignment to it or to an entry.
nlohmann::json value_after(const Setting& setting, const GivenValue& given) {
  nlohmann::json value = given.value;
  if (given.key != setting.key) value = {{given.key.substr(setting.key.size() + 1), value}};
  if (setting.key == "distributed.mesh_rules") {
    for (auto& axes : value)
      if (axes.is_string()) axes = nlohmann::json::array({axes});
  }
  return value;
}

/// Checks that the assignment has changed its setting and nothing else.
void expect_applied(const GivenValue& given, const Config& before, const Config& after) {
  Size named = 0;
  for (const Setting& setting : settings()) {
    const bool is_named = given.key == setting.key || (setting.standard.is_object() &&
                                                       given.key.starts_with(setting.key + "."));
    named += is_named;
    EXPECT_EQ(setting.get(after), is_named ? value_after(setting, given) : setting.get(before))
        << setting.key << " after " << given.key << " = " << given.value;
  }
  const bool empty_section = given.value == nlohmann::json::object() && named == 0;
  EXPECT_TRUE(named == 1 || empty_section) << given.key;
}

TEST(ConfigFuzz, RandomOverridesAreAppliedOrRefused) {
  std::mt19937 random(11);
  const std::string base =
      "[model]\nwidths = [4, 64, 1]\n[distributed]\n"
      "mesh_shape = [2, 2]\nmesh_axis_names = ['data', 'model']\n";
  const Config before = config_test::load_text(base), resolved_before = resolve(before, 4);
  const std::vector<std::string> assignments{
      "training.batch_size=[1, \"a\", {b = 2}]",
      "training.batch_size=64",
      "training.learning_rate=0.0125",
      "optimizer.kind=adamw",
      "model.widths=[4, 32, 16, 1]",
      "distributed.overlap=true",
      "distributed.parameter_specs.\"layer1/kernel\"=\"P(None, 'model')\"",
      "distributed.mesh_rules.mlp=[\"model\"]",
  };
  Tally tally;
  for (int trial = 0; trial < 4000; ++trial) {
    std::string text = assignments[static_cast<std::size_t>(trial) % assignments.size()];
    // Half of the trials change only the value, so that more are accepted.
    const std::size_t kept = random() % 2 == 0 ? text.find('=') + 1 : 0;
    const std::size_t most = kept > 0 ? 2 : 6;
    for (std::size_t edits = 1 + random() % most; edits > 0; --edits)
      text = text.substr(0, kept) + mutate(text.substr(std::min(kept, text.size())), random);
    SCOPED_TRACE(text);
    tally.count([&] {
      const Config after = config_test::load_text(base, {.overrides = {text}});
      const Config resolved = resolve(after, 4);
      expect_applied(parse_assignment(text, is_text), before, after);
      expect_applied(parse_assignment(text, is_text), resolved_before, resolved);
      const std::string printed = config_as_toml(resolved);
      EXPECT_EQ(config_as_toml(resolve(config_test::load_text(printed), 4)), printed);
    });
  }
  tally.expect_both(150);
}

}  // namespace
}  // namespace tessera
