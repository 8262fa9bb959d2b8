// SPDX-License-Identifier: Apache-2.0
// The directory of checkpoints: what stays, what goes, and which is the latest.
#include <chrono>
#include <filesystem>
#include <future>
#include <set>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tessera/checkpoint/checkpoint_store.hpp>

#include "checkpoint/checkpoint_support.hpp"
#include "expect_error.hpp"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TemporaryDirectory;

/// A model of one rank whose checkpoints are saved with any state.
class Saver {
 public:
  explicit Saver(const CheckpointConfig& config) : config_(config) {}

  /// A new process, in effect: the store is made anew.
  CheckpointStore save(Size step, double loss = 1, const SaveObserver& observer = {}) const {
    CheckpointStore made = store(observer);
    save_to(made, step, loss);
    made.finish();
    return made;
  }
  CheckpointStore store(const SaveObserver& observer) const { return {config_, alone_, observer}; }
  void save_to(CheckpointStore& to, Size step, double loss = 1) const {
    to.save(engine_, {.step = step, .epoch_losses = {loss}, .config = "{}", .provenance = "{}"});
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
  const std::vector<double> losses{5, 1, 3, 4, 2};
  for (std::size_t i = 0; i < losses.size(); ++i) saver.save(static_cast<Size>(i), losses[i]);
  EXPECT_EQ(names_in_directory(directory.path()),
            (Names{"latest", "step_0000000001.h5", "step_0000000003.h5", "step_0000000004.h5"}));
  EXPECT_EQ(*CheckpointStore::latest(directory.path()), directory.path() / "step_0000000004.h5");
}

// Who goes back to an earlier checkpoint goes on from there, not from where it was before.
TEST(CheckpointStore, NewestIsWhatWasWrittenLast) {
  const TemporaryDirectory directory;
  const Saver saver({.directory = directory.path(), .keep = 1});
  saver.save(20);
  const CheckpointStore store = saver.save(10);
  EXPECT_EQ(names_in_directory(directory.path()), (Names{"latest", "step_0000000010.h5"}));
  EXPECT_EQ(store.last(), directory.path() / "step_0000000010.h5");
  EXPECT_EQ(store.costs().saves, 1);
}

TEST(CheckpointStore, LatestIsAWholeOneOrAnError) {
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
  directory.write("latest", "step_0000000006.h5\n");
  EXPECT_EQ(error_of([&] { CheckpointStore::latest(path); }),
            (path / "latest").string() +
                ": names step_0000000006.h5, which is not a checkpoint in this directory");
  directory.write("latest", "../step_0000000005.h5\n");
  EXPECT_NE(error_of([&] {
              CheckpointStore::latest(path);
            }).find("which is not a checkpoint in this directory"),
            std::string::npos);
}

/// Ends a save, without leaving the process.
struct Interruption : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A failure at any point leaves the checkpoint before, or the new one, whole; and nothing half.
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
