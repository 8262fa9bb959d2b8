// SPDX-License-Identifier: Apache-2.0
#include <random>
#include <sstream>

#include <tessera/config/config_rules.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

std::string text_of(const std::string& input) {
  std::ostringstream text;
  text << std::ifstream(TESSERA_INPUTS "/" + input + ".toml").rdbuf();
  return text.str();
}

/// One random edit: a byte replaced, a piece erased or copied elsewhere, a word that means
/// something.
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

/// Reads mutations of the file, which is valid on `ranks` ranks.
void read_mutations(const std::string& input, Size ranks) {
  SCOPED_TRACE(input);
  std::mt19937 random(7);
  const std::string original = text_of(input);
  ASSERT_FALSE(original.empty());
  Size valid = 0;
  Size refused = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text = original;
    for (std::size_t edits = 1 + random() % 4; edits > 0; --edits) text = mutate(text, random);
    try {
      const Config config = config_test::load_text(text);
      validate(config, ranks);
      ++valid;
      EXPECT_EQ(config_as_toml(config_test::load_text(config_as_toml(config))),
                config_as_toml(config));
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.code(), ExitCode::usage) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(valid, 100);
  EXPECT_GT(refused, 100);
}

TEST(ConfigFuzz, MutatedFilesAreReadOrRefused) {
  read_mutations("tutorial", 2);
  read_mutations("tensor", 4);
}

/// Tables with many entries, whose names and specs are wrong in many ways.
TEST(ConfigFuzz, MutatedTablesAreReadOrRefused) {
  std::mt19937 random(5);
  const std::string original =
      "mesh_rules = {batch = ['data', 'fsdp'], mlp = 'model', embed = []}\n"
      "parameter_specs = {'layer1/kernel' = 'P(None, (\"model\",))', \"layer1/bias\" = "
      "'P(\"model\")'}\n";
  Size valid = 0;
  Size refused = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const std::string text =
        "[model]\nwidths = [4, 64, 1]\n[distributed]\n"
        "mesh_shape = [2, 2]\nmesh_axis_names = ['data', 'model']\n" +
        mutate(original, random);
    try {
      const Config config = config_test::load_text(text);
      validate(config, 4);
      ++valid;
      const std::string printed = config_as_toml(config);
      EXPECT_EQ(config_as_toml(config_test::load_text(printed)), printed);
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.code(), ExitCode::usage) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(valid, 100);
  EXPECT_GT(refused, 100);
}

TEST(ConfigFuzz, RandomOverridesAreReadOrRefused) {
  std::mt19937 random(11);
  const std::vector<std::string> assignments{
      "training.batch_size=[1, \"a\", {b = 2}]",
      "distributed.parameter_specs.\"layer1/kernel\"=\"P(None, 'model')\"",
      "distributed.mesh_rules.mlp=[\"model\"]",
  };
  for (int trial = 0; trial < 6000; ++trial) {
    std::string text = assignments[static_cast<std::size_t>(trial) % assignments.size()];
    for (std::size_t edits = 1 + random() % 6; edits > 0; --edits) text = mutate(text, random);
    try {
      config_test::load_text("", {.overrides = {text}});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage) << error.what();
    }
  }
}

}  // namespace
}  // namespace tessera
