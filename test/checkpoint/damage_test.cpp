// SPDX-License-Identifier: Apache-2.0
// A damaged file gives an error that names it, or the values that were written.
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include <tessera/checkpoint/checksums.hpp>
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
          .routing_so_far = {7, 1, 2},
          .config = "{\"a\": 1}",
          .provenance = "{}",
          .data = "[[1,2]]",
          .training = "a training"};
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

TEST(CheckpointFile, ReportsWrongAttributes) {
  const TemporaryDirectory directory;
  const std::string path = written_to(directory);
  const auto change = [&](const std::string& attribute, const AttributeValue& value) {
    Hdf5File file = Hdf5File::change(path);
    file.set_attribute("", attribute, value);
    file.close();
  };
  change("format_version", Size{4});
  EXPECT_EQ(error_of([&] { read_state(path); }),
            path + ": format_version: must be from 1 to 3, not 4");
  change("format_version", Size{3});
  change("batch", Size{2});
  EXPECT_EQ(error_of([&] { verify_checkpoint(path); }),
            path + ": batch: is 2, but its losses are those of 1");
  change("batch", Size{1});
  EXPECT_GT(verify_checkpoint(path), 0);
  change("format", std::string("another checkpoint"));
  EXPECT_EQ(error_of([&] { verify_checkpoint(path); }), path + ": is not a Tessera checkpoint");

  const std::string other = directory.path() / "b.h5";
  Hdf5File::create(other).close();
  EXPECT_EQ(error_of([&] { read_state(other); }), other + ": is not a Tessera checkpoint");
}

/// Copies a checkpoint. `change` returns false for arrays to leave out, and may give an array
/// another type or shape of as many bytes.
std::string copied(const std::string& path, const std::function<bool(ArrayFacts&)>& change) {
  const std::string to = path + ".copy";
  const Hdf5File from = Hdf5File::open(path);
  Hdf5File file = Hdf5File::create(to);
  for (const char* name : {"format", "format_version", "step", "epoch", "batch", "loss_scale",
                           "loss_scale_good_steps", "skipped_steps"})
    file.set_attribute("", name, from.attribute("", name));
  const auto copy_checksum = [&](const std::string& name) {
    file.set_attribute(name, checksum_attribute, from.attribute(name, checksum_attribute));
  };
  for (const char* name : {"config", "provenance", "data", "training", "contents"}) {
    file.add_text(name, from.text(name));
    copy_checksum(name);
  }
  for (const ArrayFacts& before : from.arrays()) {
    ArrayFacts facts = before;
    if (!change(facts)) continue;
    const auto all = [](const Shape& shape) {
      return std::vector<Hyperslab>{{Shape(shape.size(), 0), shape}};
    };
    std::vector<char> bytes(num_elements(before.shape) * size_of(before.type));
    from.read(before.name, before.type, all(before.shape), bytes.data());
    file.add_array(facts);
    file.write(facts.name, facts.type, all(facts.shape), bytes.data());
    copy_checksum(facts.name);
  }
  file.close();
  return to;
}

/// Files of version 2 have no parts of losses and no routing.
TEST(CheckpointFile, OfVersion2CanBeRead) {
  const TemporaryDirectory directory;
  TrainingState expected = state_of_damage_tests();
  expected.layer_losses_so_far = expected.validation_parts = expected.routing_so_far = {};
  const std::string path = copied(written_to(directory), [](const ArrayFacts& facts) {
    return facts.name != "layer_losses_so_far" && facts.name != "validation_parts" &&
           facts.name != "routing_so_far";
  });
  EXPECT_EQ(error_of([&] { read_state(path); }), path + ": layer_losses_so_far: is missing");
  Hdf5File file = Hdf5File::change(path);
  file.set_attribute("", "format_version", Size{2});
  file.close();
  EXPECT_TRUE(read_state(path) == expected);
}

// A missing array has no checksum that could differ.
TEST(CheckpointFile, ReportsMissingAndChangedArrays) {
  const TemporaryDirectory directory;
  const std::string path = written_to(directory), to = directory.path() / "model.safetensors";
  const auto expect_error = [&](const std::function<bool(ArrayFacts&)>& change,
                                const std::string& message) {
    const std::string copy = copied(path, change);
    EXPECT_EQ(error_of([&] { verify_checkpoint(copy); }), copy + ": " + message);
    EXPECT_EQ(error_of([&] { export_parameters(copy, to, ExportNames::tessera); }),
              copy + ": " + message);
    EXPECT_FALSE(fs::exists(to));
  };
  EXPECT_EQ(verify_checkpoint(copied(path, [](ArrayFacts&) { return true; })),
            verify_checkpoint(path));
  for (const char* name : {"parameters/layer1/kernel", "moment2/layer2/bias", "epoch_losses"})
    expect_error([&](ArrayFacts& facts) { return facts.name != name; },
                 std::string(name) + ": is missing");
  expect_error(
      [](ArrayFacts& facts) {
        if (facts.name == "parameters/layer2/bias") facts = {facts.name, {1}, DType::float64};
        return true;
      },
      "parameters/layer2/bias: has shape (1,), but shape (2,) when it was written");
  expect_error(
      [](ArrayFacts& facts) {
        if (facts.name == "moment1/layer2/kernel") std::swap(facts.shape[0], facts.shape[1]);
        return true;
      },
      "moment1/layer2/kernel: has shape (2, 5), but shape (5, 2) when it was written");
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

// A file that cannot be read whole is not exported, and leaves no file.
TEST(CheckpointFile, DamageIsNotExported) {
  const TemporaryDirectory directory;
  const std::string path = written_to(directory), to = directory.path() / "model.safetensors";
  EXPECT_EQ(export_parameters(path, to, ExportNames::tessera), 4U);
  fs::remove(to);
  {
    Hdf5File file = Hdf5File::change(path);
    const float changed = 3;
    file.write("parameters/layer2/bias", DType::float32, {{{1}, {1}}}, &changed);
    file.close();
  }
  EXPECT_EQ(error_of([&] { export_parameters(path, to, ExportNames::pytorch); }),
            path + ": parameters/layer2/bias: is damaged: its checksum differs");
  EXPECT_FALSE(fs::exists(to) || fs::exists(to + ".unfinished"));
}

}  // namespace
}  // namespace tessera
