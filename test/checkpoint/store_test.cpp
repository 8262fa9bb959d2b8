// SPDX-License-Identifier: Apache-2.0
// The directory of checkpoints: which files stay, and which is the latest.
#include <chrono>
#include <cmath>
#include <filesystem>
#include <future>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tessera/checkpoint/checkpoint_store.hpp>
#include <tessera/process/host_info.hpp>

#include "checkpoint/checkpoint_support.hpp"
#include "expect_error.hpp"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TemporaryDirectory;

/// Saves checkpoints of a model on one rank.
class Saver {
 public:
  explicit Saver(const CheckpointConfig& config) : config_(config) {}

  /// Saves with a new store, like a new process that resumes from the step before.
  CheckpointStore save(Size step, double loss = 1, const SaveObserver& observer = {}) const {
    CheckpointStore made = store(observer, step - 1);
    save_to(made, step, loss);
    made.finish();
    return made;
  }
  CheckpointStore store(const SaveObserver& observer, Size resumed_at = 1000) const {
    return {config_, alone_, observer, ResumedFrom{"one training", resumed_at}};
  }
  CheckpointStore store_of_new_training() const { return {config_, alone_}; }
  void save_to(CheckpointStore& to, Size step, double loss = 1) const {
    to.save(engine_, {.step = step,
                      .epoch_losses = {7},
                      .validations = {{1, loss, NAN}},
                      .config = R"({"data": {"validation_samples": 1}})",
                      .provenance = "{}"});
  }

 private:
  CheckpointConfig config_;
  Communicator alone_ = Communicator::world().alone("alone");
  Mesh mesh_{alone_, MeshShape({{"data", 1}})};
  Engine<float> engine_{checkpoint_test::plan_on(
                            [] {
                              train_test::Experiment setup;
                              setup.model.mlp.widths = {3, 5, 2};
                              return setup;
                            }(),
                            mesh_.shape()),
                        mesh_,
                        {}};
};

std::set<std::string> names_in_directory(const fs::path& directory) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory))
    names.insert(entry.path().filename().string());
  return names;
}

using Names = std::set<std::string>;

TEST(CheckpointStore, KeepsTheNewestAndTheBest) {
  const TemporaryDirectory directory;
  const Saver saver({.directory = directory.path(), .keep = 2, .keep_best = 1});
  const std::vector<double> losses{NAN, 5, NAN, 1, 3, 4, 2};
  for (std::size_t i = 0; i < losses.size(); ++i) saver.save(static_cast<Size>(i), losses[i]);
  EXPECT_EQ(names_in_directory(directory.path()),
            (Names{"latest", "step_0000000003.h5", "step_0000000005.h5", "step_0000000006.h5"}));
  EXPECT_EQ(*CheckpointStore::latest(directory.path()), directory.path() / "step_0000000006.h5");
  EXPECT_EQ(saver.store({}).best(), directory.path() / "step_0000000003.h5");
}

// A training that resumes from an earlier checkpoint makes that the latest one.
TEST(CheckpointStore, TheNewestIsTheLastWritten) {
  const TemporaryDirectory directory;
  const Saver saver({.directory = directory.path(), .keep = 1});
  saver.save(20);
  const CheckpointStore store = saver.save(10);
  EXPECT_EQ(names_in_directory(directory.path()), (Names{"latest", "lock", "step_0000000010.h5"}));
  EXPECT_EQ(store.last(), directory.path() / "step_0000000010.h5");
  EXPECT_EQ(store.costs().saves, 1);
}

TEST(CheckpointStore, LatestIsACompleteCheckpointOrAnError) {
  const TemporaryDirectory directory;
  const fs::path path = directory.path();
  EXPECT_EQ(CheckpointStore::latest(path), std::nullopt);
  EXPECT_EQ(CheckpointStore::latest(path / "nothing"), std::nullopt);
  directory.write("step_0000000003.h5.unfinished", "half");
  EXPECT_EQ(CheckpointStore::latest(path), std::nullopt);
  Saver({.directory = path}).save(5);
  EXPECT_EQ(names_in_directory(path), (Names{"latest", "step_0000000005.h5"}));
  fs::remove(path / "latest");
  EXPECT_EQ(*CheckpointStore::latest(path), path / "step_0000000005.h5");
  for (const char* name : {"step_0000000006.h5\n", "../step_0000000005.h5\n", "\n"}) {
    directory.write("latest", name);
    directory.write("step_0000000009.h5", "damaged");
    EXPECT_EQ(*CheckpointStore::latest(path), path / "step_0000000005.h5");
  }
  directory.write("latest", "step_0000000006.h5\n");
  fs::remove(path / "step_0000000005.h5");
  EXPECT_TRUE(error_of([&] {
                CheckpointStore::latest(path);
              }).starts_with((path / "step_0000000009.h5").string() + ": "));
  fs::remove(path / "step_0000000009.h5");
  EXPECT_EQ(error_of([&] { CheckpointStore::latest(path); }),
            (path / "latest").string() +
                ": names step_0000000006.h5, which is not a checkpoint in this directory");
}

TEST(CheckpointStore, OneTrainingDoesNotWriteOverAnother) {
  const TemporaryDirectory directory;
  const std::string path = directory.path();
  const Saver saver({.directory = path, .keep = 1});
  saver.save(150);
  EXPECT_EQ(error_of([&] { saver.store_of_new_training(); }),
            "checkpoint.directory = " + path +
                ": holds step_0000000150.h5 of another training; resume that with --resume, set "
                "another directory, or replace it with checkpoint.overwrite = true");
  const Saver replaces({.directory = path, .keep = 0, .overwrite = true});
  {
    CheckpointStore store = replaces.store_of_new_training();
    EXPECT_EQ(*CheckpointStore::latest(path), directory.path() / "step_0000000150.h5");
    replaces.save_to(store, 10);
    replaces.save_to(store, 20);
    EXPECT_NE(store.training(), "one training");
  }
  EXPECT_EQ(names_in_directory(path),
            (Names{"latest", "step_0000000010.h5", "step_0000000020.h5"}));
  // The new training may resume here, and the old one may not.
  const std::string training = read_state(path + "/step_0000000020.h5").training;
  EXPECT_NE(error_of([&] { saver.store({}); }).find("holds step_00000000"), std::string::npos);
  const Communicator alone = Communicator::world().alone("alone");
  EXPECT_EQ(CheckpointStore({.directory = path}, alone, {}, ResumedFrom{training, 20}).training(),
            training);
}

// A damaged file does not keep a training from resuming, and stays.
TEST(CheckpointStore, DamagedFilesDoNotPreventATrainingFromResuming) {
  const TemporaryDirectory directory;
  const Saver saver({.directory = directory.path(), .keep = 1});
  saver.save(5);
  directory.write("step_0000000007.h5", "damaged");
  saver.save(9);
  EXPECT_EQ(names_in_directory(directory.path()),
            (Names{"latest", "step_0000000007.h5", "step_0000000009.h5"}));
}

TEST(CheckpointStore, OneLiveRunHasTheDirectory) {
  const TemporaryDirectory directory;
  const Saver saver({.directory = directory.path()});
  std::optional<CheckpointStore> store = saver.store({});
  directory.write("step_0000000003.h5.unfinished", "of the first run");
  EXPECT_EQ(
      error_of([&] { saver.store({}); }),
      fmt::format("checkpoint.directory = {}: is in use by process {} on {}, which is running; "
                  "set another directory",
                  directory.path().string(), getpid(), host_name()));
  EXPECT_EQ(names_in_directory(directory.path()), (Names{"lock", "step_0000000003.h5.unfinished"}));
  store.reset();
  saver.store({});
  EXPECT_TRUE(names_in_directory(directory.path()).empty());
}

// A file system that cannot hold checkpoints is found before any training; no file is left.
TEST(CheckpointStore, ADirectoryThatCannotHoldFilesIsRejected) {
  const TemporaryDirectory directory;
  fs::create_directory(directory.path() / "trial.h5.unfinished");
  directory.write("trial.h5.unfinished/file", "so that it cannot be removed");
  const std::string path = directory.path();
  for (const bool async : {false, true}) {
    EXPECT_TRUE(error_of([&] { Saver({.directory = path, .async = async}).store({}); })
                    .starts_with("checkpoint.directory = " + path +
                                 ": cannot hold checkpoints: " + path + "/trial.h5.unfinished: "));
    EXPECT_EQ(names_in_directory(path), Names{"trial.h5.unfinished"});
  }
}

/// Ends a save, but not the process.
struct Interruption : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A failure at any point leaves the previous or the new checkpoint whole, and no unfinished file.
class FailedSaves : public testing::TestWithParam<bool> {};
TEST_P(FailedSaves, AtAnyPointLeaveAWholeCheckpoint) {
  for (std::size_t point = 0; point < names_of<SavePoint>.size(); ++point) {
    SCOPED_TRACE(names_of<SavePoint>[point]);
    const TemporaryDirectory directory;
    const Saver saver({.directory = directory.path(), .keep = 1, .async = GetParam()});
    saver.save(1);
    EXPECT_THROW(saver.save(2, 1,
                            [&](SavePoint reached) {
                              if (static_cast<std::size_t>(reached) == point)
                                throw Interruption("here");
                            }),
                 std::runtime_error);
    const fs::path latest = *CheckpointStore::latest(directory.path());
    const bool is_new = static_cast<SavePoint>(point) >= SavePoint::latest_renamed;
    EXPECT_EQ(read_state(latest.string()).step, is_new ? 2 : 1);
    EXPECT_GT(verify_checkpoint(latest.string()), 0);
    saver.save(3);
    EXPECT_EQ(names_in_directory(directory.path()), (Names{"latest", "step_0000000003.h5"}));
  }
}
INSTANTIATE_TEST_SUITE_P(CheckpointStore, FailedSaves, testing::Bool(),
                         [](const auto& test) { return test.param ? "async" : "sync"; });

TEST(CheckpointStore, OneSaveIsInFlightAtATime) {
  const TemporaryDirectory directory;
  std::promise<void> permission;
  const std::shared_future<void> may_write = permission.get_future().share();
  const auto wait = [&](SavePoint point) {
    if (point == SavePoint::tensor_written) may_write.wait();
  };
  const Saver saver({.directory = directory.path(), .keep = 0, .async = true});
  CheckpointStore store = saver.store(wait);
  saver.save_to(store, 1);
  EXPECT_EQ(store.written_saves(), 0);
  EXPECT_FALSE(store.is_ready(store.written_saves()));
  EXPECT_EQ(CheckpointStore::latest(directory.path()), std::nullopt);
  permission.set_value();
  while (store.written_saves() == 0) std::this_thread::yield();
  EXPECT_TRUE(store.is_ready(1));
  EXPECT_FALSE(store.is_ready(0));  // another rank has not
  EXPECT_EQ(CheckpointStore::latest(directory.path()), std::nullopt);
  saver.save_to(store, 2);  // waits for the first one
  EXPECT_EQ(CheckpointStore::latest(directory.path())->filename(), "step_0000000001.h5");
  EXPECT_EQ(store.costs().saves, 1);
  store.finish();
  EXPECT_FALSE(store.is_ready(2));
  EXPECT_EQ(CheckpointStore::latest(directory.path())->filename(), "step_0000000002.h5");
}

}  // namespace
}  // namespace tessera
