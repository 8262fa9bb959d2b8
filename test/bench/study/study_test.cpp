// SPDX-License-Identifier: Apache-2.0
#include "study/study.hpp"

#include <algorithm>
#include <iterator>

#include <tessera/base/error.hpp>

#include "temporary_directory.hpp"

namespace tessera::bench {
namespace {

Study load(const std::string& text, bool small = false, std::vector<std::string> overrides = {}) {
  const test::TemporaryDirectory directory;
  directory.write("base.toml", "[model]\nwidths = [2, 3, 1]\n[training]\nbatch_size = 16\n");
  return load_study({directory.write("sweep.toml", text), small, std::move(overrides)});
}

std::string error_of(const std::string& text, bool small = false) {
  try {
    load(text, small);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "no error";
}

void expect_error(const std::string& text, const std::string& piece, bool small = false) {
  const std::string error = error_of(text, small);
  EXPECT_NE(error.find(piece), std::string::npos) << error << "\nlacks\n" << piece;
}

TEST(Study, StartsFromABaseBesideIt) {
  const Study study = load(R"(
[study]
base = "base.toml"
description = "what it shows"
scaling = "weak"
[training]
batch_size = 8
[measure]
steps = 10
max_steps = 20
[[grid]]
ranks = [1, 2]
[[grid]]
mesh = "data=4"
)");
  EXPECT_EQ(study.name, "sweep");
  EXPECT_EQ(study.description, "what it shows");
  EXPECT_EQ(study.scaling, ScalingKind::weak);
  EXPECT_EQ(study.base.model.mlp.widths, (std::vector<Size>{2, 3, 1}));
  EXPECT_EQ(study.base.training.batch_size, 8) << "the study's own keys win over the base's";
  EXPECT_EQ(study.measure.steps, 10);
  EXPECT_EQ(study.measure.warm_up, 5);
  ASSERT_EQ(study.grids.size(), 2u);
  EXPECT_EQ(study.grids[0].at("ranks").size(), 2u);
  EXPECT_EQ(study.grids[1].at("mesh").size(), 1u) << "one value needs no list";
}

TEST(Study, SmallVariantReplacesWhatItNames) {
  const char* const text = R"(
[model]
widths = [64, 64, 1]
[[grid]]
ranks = [1, 2, 4, 8]
[small.model]
widths = [4, 8, 1]
[small.measure]
steps = 6
[[small.grid]]
ranks = [1, 2]
)";
  const Study whole = load(text), small = load(text, true);
  EXPECT_EQ(whole.base.model.mlp.widths[0], 64);
  EXPECT_EQ(small.base.model.mlp.widths[0], 4);
  EXPECT_EQ(small.measure.steps, 6);
  EXPECT_EQ(whole.grids[0].at("ranks").size(), 4u);
  EXPECT_EQ(small.grids[0].at("ranks").size(), 2u);
  expect_error("[[grid]]\nranks = 1\n", "no table [small]", true);
}

TEST(Study, OverridesWinOverTheFile) {
  const Study study = load("[measure]\nsteps = 10\n[[grid]]\nranks = 1\n", false,
                           {"measure.steps=12", "model.seed=7"});
  EXPECT_EQ(study.measure.steps, 12);
  EXPECT_EQ(study.base.model.mlp.seed, 7u);
}

TEST(Study, TextOnTheCommandLineIsTakenAsItStands) {
  const Study study =
      load("[[grid]]\nranks = 1\n", false,
           {"study.name=2024", "checkpoint.directory=12345", "study.description=true"});
  EXPECT_EQ(study.name, "2024");
  EXPECT_EQ(study.description, "true");
  EXPECT_EQ(study.base.checkpoint.directory, "12345");
  expect_error("[study]\nname = 2024\n[[grid]]\nranks = 1\n",
               "study.name = 2024: must be a string");
}

TEST(Study, UnknownKeysAreErrorsWithTheNearestKnownOne) {
  expect_error("[measure]\nstep = 3\n[[grid]]\nranks = 1\n", "did you mean measure.steps?");
  expect_error("seed = 3\n[[grid]]\nranks = 1\n", "did you mean study.seed?");
  expect_error("[trainnig]\nbatch_size = 3\n[[grid]]\nranks = 1\n",
               "did you mean training.batch_size?");
  expect_error("[training]\nbatch_sise = 3\n[[grid]]\nranks = 1\n",
               "did you mean training.batch_size?");
  expect_error("[[grid]]\nstrategi = \"data\"\nranks = 1\n", "did you mean strategy?");
  expect_error("[[grid]]\nranks = 1\ndistributed.overlop = [true]\n",
               "did you mean distributed.overlap?");
  expect_error("[[exclude]]\nrank = 1\nreason = \"x\"\n[[grid]]\nranks = 1\n",
               "did you mean ranks?");
}

TEST(Study, NamesOfOtherToolsGiveHints) {
  expect_error("[training]\nlr = 3\n[[grid]]\nranks = 1\n", "did you mean training.learning_rate?");
  expect_error("[[grid]]\nlr = [3]\nranks = 1\n", "did you mean training.learning_rate?");
  expect_error("[[grid]]\ndp = [3]\nranks = 1\n", "did you mean the mesh axis data?");
  expect_error("[model]\nwidths = [1]\n", "is no study; tessera run trains");
}

TEST(Study, MistakesInTheSmallVariantAreErrors) {
  expect_error("[[grid]]\nranks = 1\n[small.measure]\nstep = 3\n", "did you mean measure.steps?");
}

TEST(Study, WrongValuesNameTheKeyAndWhatIsAllowed) {
  expect_error("[measure]\nsteps = 0\n[[grid]]\nranks = 1\n",
               "measure.steps = 0: must be positive");
  expect_error("[measure]\nmax_steps = 3\n[[grid]]\nranks = 1\n", "must be at least measure.steps");
  expect_error("[verify]\ntolerance = -1.0\n[[grid]]\nranks = 1\n", "verify.tolerance = -1.0");
  expect_error("[verify]\nranks = 2\n[[grid]]\nranks = 1\n",
               "verify.ranks = 2: needs limits.memory_bytes");
  expect_error("verify = false\n[[grid]]\nranks = 1\n[small.verify]\nranks = 2\n",
               "verify.ranks = 2: needs verify = true", true);
  expect_error("[limits]\ncase_seconds = \"soon\"\n[[grid]]\nranks = 1\n", "must be a number");
  expect_error("[study]\nscaling = \"week\"\n[[grid]]\nranks = 1\n", "must be one of strong, weak");
  expect_error("grid = 3\n", "[[grid]]");
  expect_error("[[grid]]\nranks = []\n", "at least one value");
  expect_error("[[exclude]]\nranks = 1\n[[grid]]\nranks = 1\n", "needs a reason");
  expect_error("[[exclude]]\nreason = \"x\"\n[[grid]]\nranks = 1\n", "needs at least one factor");
  expect_error("[[exclude]]\nmeshes_over = [\"data\"]\nreason = \"x\"\n[[grid]]\nranks = 1\n",
               "is not a factor of a case; use mesh");
  expect_error("[model]\nwidths = [1]\n", "has no [[grid]]");
  expect_error("[study]\nbase = \"absent.toml\"\n[[grid]]\nranks = 1\n", "cannot be read");
  expect_error("[[grid\n", ":1: ");
}

// The example in bench/README.md is a valid study.
TEST(Study, TheExampleOfTheReadmeIsValid) {
  std::ifstream file(TESSERA_BENCH_README);
  const std::string readme{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string opening = "```toml\n";
  const std::size_t begin = readme.find(opening) + opening.size();
  const std::size_t end = readme.find("```", begin);
  ASSERT_NE(end, std::string::npos);
  const test::TemporaryDirectory directory;
  directory.write("large.toml", "[model]\nwidths = [2, 3, 1]\n[data]\nsamples = 4096\n");
  const std::string path = directory.write("example.toml", readme.substr(begin, end - begin));
  const std::vector<Case> cases = make_cases(load_study({path}));
  EXPECT_GT(cases.size(), 50u);
  EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [](const Case& point) {
    return point.skip_reason == "nothing to shard";
  }));
  EXPECT_EQ(load_study({path, true}).measure.steps, 6);
}

TEST(Study, AFileThatIsNotThereIsAnError) {
  EXPECT_THROW(load_study({"/nonexistent/study.toml"}), Error);
  EXPECT_THROW(load_study({"/"}), Error);
}

}  // namespace
}  // namespace tessera::bench
