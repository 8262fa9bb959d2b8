// SPDX-License-Identifier: Apache-2.0
// Whatever happens to a file: an error that names it, or the values that were written.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include <tessera/base/outcome.hpp>
#include <tessera/checkpoint/model_export.hpp>

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
          .validations = {{1, 0.75, 2}, {2, 0.5, 1}},
          .config = "{\"a\": 1}",
          .provenance = "{}"};
}

/// A checkpoint with that state, of one rank.
std::string written_to(const TemporaryDirectory& directory) {
  const std::string path = directory.path() / "a.h5";
  const Communicator alone = Communicator::world().alone("alone");
  const Mesh mesh(alone, MeshShape({{"data", 1}}));
  const Engine<float> engine(checkpoint_test::plan_on(small(), mesh.shape()), mesh, {});
  checkpoint_test::set_elements(engine, 0);
  create_checkpoint(path, checkpoint_tensors(engine.plan()), state_of_damage_tests());
  write_tensors(path, alone, engine);
  return path;
}

std::string content_of_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST(CheckpointFile, GivesBackTheStateThatItWasWrittenWith) {
  const TemporaryDirectory directory;
  const TrainingState read = read_state(written_to(directory)), written = state_of_damage_tests();
  EXPECT_EQ(read.step, written.step);
  EXPECT_EQ(read.loss_scale, written.loss_scale);
  EXPECT_EQ(read.epoch_losses, written.epoch_losses);
  EXPECT_EQ(read.losses_so_far, written.losses_so_far);
  EXPECT_EQ(read.validations, written.validations);
  EXPECT_EQ(read.config, written.config);
  EXPECT_EQ(read.provenance, written.provenance);
}

TEST(CheckpointFile, LossIsThatOfAnEpochsEnd) {
  TrainingState state{.epoch_losses = {0.5, 0.25}};
  EXPECT_EQ(state.loss(), 0.25);
  state.validations = {{1, 0.75, 0}};
  EXPECT_EQ(state.loss(), 0.25);
  state.validations.push_back({2, 0.125, 0});
  EXPECT_EQ(state.loss(), 0.125);
  state.losses_so_far = {1};
  EXPECT_EQ(state.loss(), std::numeric_limits<double>::infinity());
}

TEST(CheckpointFile, NamesWhatIsWrong) {
  const TemporaryDirectory directory;
  const std::string path = written_to(directory);
  const auto change = [&](const std::string& attribute, const AttributeValue& value) {
    Hdf5File file = Hdf5File::change(path);
    file.set_attribute("", attribute, value);
    file.close();
  };
  change("format_version", Size{2});
  EXPECT_EQ(error_of([&] { read_state(path); }),
            path + ": format_version: must be from 1 to 1, not 2");
  change("format_version", Size{1});
  EXPECT_GT(verify_checkpoint(path), 0);
  change("format", std::string("another checkpoint"));
  EXPECT_EQ(error_of([&] { verify_checkpoint(path); }), path + ": is not a Tessera checkpoint");

  const std::string other = directory.path() / "b.h5";
  Hdf5File::create(other).close();
  EXPECT_EQ(error_of([&] { read_state(other); }), other + ": is not a Tessera checkpoint");
}

// What is not used of a file may change without harm.
TEST(CheckpointFile, FlippedBitsAreFoundOrWithoutHarm) {
  const TemporaryDirectory directory;
  const std::string path = written_to(directory), whole = content_of_file(path);
  const std::string broken = directory.path() / "broken.h5";
  std::size_t found = 0, harmless = 0;
  for (std::size_t at = 0; at < whole.size(); at += 5) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    std::ofstream(broken, std::ios::binary) << bytes;
    const Outcome outcome = outcome_of([&] { verify_checkpoint(broken); });
    if (!outcome.failed()) {
      ++harmless;
      const TrainingState state = read_state(broken), written = state_of_damage_tests();
      EXPECT_EQ(state.step, written.step) << at;
      EXPECT_EQ(state.loss_scale, written.loss_scale) << at;
      EXPECT_EQ(state.config, written.config) << at;
      continue;
    }
    ++found;
    EXPECT_EQ(outcome.code, ExitCode::usage) << at << ": " << outcome.message;
    EXPECT_TRUE(outcome.message.starts_with(broken + ": ")) << at << ": " << outcome.message;
  }
  EXPECT_GT(found, harmless) << harmless << " of " << whole.size() << " without harm";
  RecordProperty("found", static_cast<int>(found));
  RecordProperty("harmless", static_cast<int>(harmless));
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

// What cannot be read whole is not exported, and leaves no file.
TEST(CheckpointFile, DamageIsNotExported) {
  const TemporaryDirectory directory;
  const std::string path = written_to(directory), to = directory.path() / "model.npz";
  EXPECT_EQ(export_parameters(path, to, ExportFormat::npz, ExportNames::tessera), 4U);
  fs::remove(to);
  {
    Hdf5File file = Hdf5File::change(path);
    const float changed = 3;
    file.write("parameters/layer2/bias", DType::float32, {{{1}, {1}}}, &changed);
    file.close();
  }
  for (const ExportFormat format : {ExportFormat::npz, ExportFormat::safetensors})
    EXPECT_EQ(error_of([&] { export_parameters(path, to, format, ExportNames::pytorch); }),
              path + ": parameters/layer2/bias: is damaged: its checksum differs");
  EXPECT_FALSE(fs::exists(to) || fs::exists(to + ".unfinished"));
}

}  // namespace
}  // namespace tessera
