// SPDX-License-Identifier: Apache-2.0
// A damaged file gives an error that names it, or the values that were written.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include <tessera/checkpoint/model_export.hpp>
#include <tessera/process/outcome.hpp>

#include "checkpoint/checkpoint_support.hpp"
#include "expect_error.hpp"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TemporaryDirectory;

train_test::Experiment small() {
  train_test::Experiment setup;
  setup.model.mlp.widths = {3, 5, 2};
  return setup;
}

TrainingState state_of_damage_tests() {
  return {.step = 7,
          .loss_scale = {.value = 1024, .good_steps = 3, .skipped_steps = 2},
          .epoch_losses = {0.5, 0.25},
          .losses_so_far = {3},
          .layer_losses_so_far = {0.5, 0.125},
          .validations = {{1, 0.75, 2}, {2, 0.5, 1}},
          .validation_parts = {0.75, 0.5, 4, 2},
          .config = {{"a", 1}},
          .data = "[[1,2]]",
          .training = "a training"};
}

/// A checkpoint with that state, of one rank.
std::string written_to(const TemporaryDirectory& directory) {
  const std::string path = directory.path() / "a.safetensors";
  const Communicator alone = Communicator::world().alone("alone");
  const Mesh mesh(alone, MeshShape({{"data", 1}}));
  const Engine<float> engine(checkpoint_test::plan_on(small(), mesh.shape()), mesh, {});
  checkpoint_test::set_elements(engine, 0);
  checkpoint_test::write_file(path, alone, engine, state_of_damage_tests());
  return path;
}

std::string content_of_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST(CheckpointFile, HoldsTheStateThatWasWritten) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(read_state(written_to(directory)) == state_of_damage_tests());
}

TEST(CheckpointFile, HasALossAtTheEndOfAnEpoch) {
  constexpr double none = std::numeric_limits<double>::infinity();
  TrainingState state{.epoch_losses = {0.5, 0.25}};
  EXPECT_EQ(state.loss(false), 0.25);
  EXPECT_EQ(state.loss(true), none);
  state.validations = {{1, 0.75, 0}};
  EXPECT_EQ(state.loss(true), none);
  state.validations.push_back({2, 0.125, 0});
  EXPECT_EQ(state.loss(true), 0.125);
  state.losses_so_far = {1};
  EXPECT_EQ(state.loss(true), none);
  EXPECT_EQ(state.loss(false), none);
}

// JSON has none. No code tells infinity from NaN.
TEST(CheckpointFile, HasNanForLossesThatAreNotFinite) {
  const TemporaryDirectory directory;
  constexpr double infinite = std::numeric_limits<double>::infinity();
  TrainingState state = state_of_damage_tests();
  state.validations = {{1, infinite, NAN}, {2, -infinite, 0.1}};
  const std::string path = directory.write("a", checkpoint_header({}, state, {}));
  const TrainingState read = read_state(path);
  for (const double value :
       {read.validations[0][1], read.validations[0][2], read.validations[1][1]})
    EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(read.validations[1][2], 0.1);
}

TEST(CheckpointFile, ReportsOtherFilesAndVersions) {
  const TemporaryDirectory directory;
  const auto problem_of = [&](std::string bytes) {
    const std::string path = directory.write("b.safetensors", bytes);
    std::string message = error_of([&] { read_state(path); });
    EXPECT_EQ(error_of([&] { verify_checkpoint(path); }), message);
    return message.substr(std::min(message.size(), path.size()));
  };
  EXPECT_EQ(problem_of(safetensors_header({})), ": is not a Tessera checkpoint");
  EXPECT_EQ(problem_of(safetensors_header({}, {{"tessera", "{}"}})),
            ": is damaged: the checksum of its header differs");
  // Another program has changed a shape.
  std::string other = content_of_file(written_to(directory));
  other.replace(other.find(R"("shape":[3,5])"), 13, R"("shape":[5,3])");
  EXPECT_EQ(problem_of(other), ": is damaged: the checksum of its header differs");
}

// A flipped bit in an unused byte changes nothing.
TEST(CheckpointFile, FlippedBitsAreFoundOrHarmless) {
  const TemporaryDirectory directory;
  const std::string path = written_to(directory), whole = content_of_file(path);
  std::size_t found = 0, harmless = 0;
  for (std::size_t at = 0; at < whole.size(); at += 5) {
    const auto put = [&](int byte) {
      std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(byte));
    };
    put(whole[at] ^ (1 << at % 8));
    const Outcome outcome = outcome_of([&] { verify_checkpoint(path); });
    if (outcome.failed()) {
      ++found;
      EXPECT_EQ(outcome.code, ExitCode::usage) << at << ": " << outcome.message;
      EXPECT_TRUE(outcome.message.starts_with(path + ": ")) << at << ": " << outcome.message;
    } else {
      ++harmless;
      EXPECT_TRUE(read_state(path) == state_of_damage_tests()) << at;
    }
    put(whole[at]);
  }
  EXPECT_GT(found, harmless) << harmless << " of " << whole.size() << " without harm";
}

TEST(CheckpointFile, EveryCutIsFound) {
  const TemporaryDirectory directory;
  const std::string path = written_to(directory);
  for (std::size_t length = fs::file_size(path); length-- > 0;) {
    fs::resize_file(path, length);
    const std::string message = error_of([&] { verify_checkpoint(path); });
    ASSERT_TRUE(message.starts_with(path + ": ")) << length << ": " << message;
    length -= std::min<std::size_t>(length, 12);
  }
}

// A file that cannot be read whole is not exported, and leaves no file.
TEST(CheckpointFile, DamageIsNotExported) {
  const TemporaryDirectory directory;
  const std::string path = written_to(directory), to = directory.path() / "model.safetensors";
  EXPECT_EQ(export_parameters(path, to, ExportNames::tessera), 4U);
  fs::remove(to);
  const float changed = 3;
  checkpoint_test::change_tensor(path, "layer2/bias", 4, &changed, 4);
  EXPECT_EQ(error_of([&] { export_parameters(path, to, ExportNames::pytorch); }),
            path + ": layer2/bias: is damaged: its checksum differs");
  EXPECT_FALSE(fs::exists(to) || fs::exists(to + ".unfinished"));
}

}  // namespace
}  // namespace tessera
