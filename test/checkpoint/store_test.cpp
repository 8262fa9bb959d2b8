// SPDX-License-Identifier: Apache-2.0
// The folders of trainings: which files stay, which is the newest, and who may write.
#include <chrono>
#include <cmath>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tessera/checkpoint/checkpoint_store.hpp>
#include <tessera/checkpoint/trainings.hpp>

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

  /// Returns the store of a run that starts a training, or that resumes one from a step of
  /// `training`.
  CheckpointStore store(const SaveObserver& observer = {}, const fs::path& training = {},
                        Size step = 0) const {
    TrainingStart start{.fingerprint = "0123abcd"};
    if (!training.empty()) start.resumed = ResumedFrom{training, step, "0123abcd-before"};
    return started(start, observer);
  }
  CheckpointStore started(const TrainingStart& start, const SaveObserver& observer = {}) const {
    return {config_, alone_, observer, start};
  }
  void save_to(CheckpointStore& to, Size step, double loss = 1) const {
    to.save(engine_, {.step = step,
                      .epoch_losses = {7},
                      .validations = {{1, loss, NAN}},
                      .config = {{"data", {{"validation_samples", 1}}}}});
  }
  /// Saves a step with a store of its own, like a new process that resumes from the newest one.
  fs::path save(Size step, double loss = 1, const SaveObserver& observer = {}) const {
    const auto all = trainings_in(config_.directory);
    const fs::path training = all.empty() ? fs::path() : all.front();
    const Size from = all.empty() ? 0 : *step_of_checkpoint(newest_complete(training)->filename());
    CheckpointStore made = store(observer, training, from);
    save_to(made, step, loss);
    made.finish();
    return made.last();
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

using Steps = std::vector<Size>;
using Names = std::vector<std::string>;

TEST(CheckpointStore, KeepsTheNewestAndTheBest) {
  const TemporaryDirectory directory;
  const Saver saver({.directory = directory.path(), .keep = 2, .keep_best = 1});
  const std::vector<double> losses{NAN, 5, NAN, 1, 3, 4, 2};
  fs::path last;
  for (std::size_t i = 0; i < losses.size(); ++i)
    last = saver.save(static_cast<Size>(i) + 1, losses[i]);
  const fs::path training = last.parent_path();
  EXPECT_EQ(steps_in(training), (Steps{7, 6, 4}));
  EXPECT_EQ(*newest_complete(training), training / checkpoint_name(7));
  EXPECT_EQ(saver.store({}, training, 7).best(), training / checkpoint_name(4));
  EXPECT_EQ(names_in(directory.path()), Names{training.filename()});
}

// A damaged file is none of those to keep.
TEST(CheckpointStore, KeepsTheNewestCompleteOnes) {
  const TemporaryDirectory directory;
  const Saver saver({.directory = directory.path(), .keep = 0});
  fs::path last;
  for (Size step = 1; step <= 5; ++step) last = saver.save(step);
  fs::resize_file(last, 3000);
  const fs::path training = last.parent_path();
  CheckpointStore store = Saver({.directory = directory.path(), .keep = 2}).store({}, training, 4);
  saver.save_to(store, 6);
  EXPECT_EQ(steps_in(training), (Steps{6, 5, 4}));
  saver.save_to(store, 7);
  EXPECT_EQ(steps_in(training), (Steps{7, 6}));
}

// Two trainings never meet, even if they start in the same second.
TEST(CheckpointStore, EachTrainingHasAFolderOfItsOwn) {
  const TemporaryDirectory directory;
  const Saver saver({.directory = directory.path(), .keep = 1});
  CheckpointStore one = saver.store(), other = saver.store();
  saver.save_to(one, 5);
  saver.save_to(other, 5);
  EXPECT_NE(one.last(), other.last());
  EXPECT_EQ(trainings_in(directory.path()).size(), 2U);
  for (const CheckpointStore* store : {&one, &other}) {
    EXPECT_TRUE(store->training().filename().string().starts_with("0123abcd-"));
    EXPECT_EQ(read_state(store->last()).training, store->training().filename());
  }
}

// A branch has the checkpoints up to its beginning, and later ones of others are not its own.
TEST(CheckpointStore, ABranchBeginsAFolderWithItsHistory) {
  const TemporaryDirectory directory;
  const Saver saver({.directory = directory.path(), .keep = 0});
  const std::vector<double> losses{5, 2, 1};
  fs::path last;
  for (Size step = 1; step <= 3; ++step) last = saver.save(step, losses[step - 1]);
  const fs::path first = last.parent_path();
  const Saver keeps({.directory = directory.path(), .keep = 1, .keep_best = 1});
  CheckpointStore branch = keeps.store({}, first, 2);
  EXPECT_NE(branch.training(), first);
  EXPECT_EQ(trainings_in(directory.path()), std::vector<fs::path>{first});  // it may yet fail
  keeps.save_to(branch, 3, 4);
  EXPECT_EQ(steps_in(branch.training()), (Steps{3, 2}));
  EXPECT_EQ(branch.best(), branch.training() / checkpoint_name(2));
  EXPECT_EQ(steps_in(first), (Steps{3, 2, 1}));
  EXPECT_EQ(read_state(branch.training() / checkpoint_name(3)).validations[0][1], 4);
  EXPECT_EQ(read_state(first / checkpoint_name(3)).validations[0][1], 1);
}

// Files of other trainings may lie beside the one that a run resumes from.
TEST(CheckpointStore, ABranchTakesNoCheckpointsOfOtherTrainings) {
  const TemporaryDirectory directory, collection;
  const Saver saver({.directory = directory.path()});
  for (const Size step : {1, 2}) {
    TrainingStart start{.fingerprint = step == 1 ? "other" : "0123abcd"};
    CheckpointStore store = saver.started(start);
    saver.save_to(store, step);
    fs::copy(store.last(), collection.path() / checkpoint_name(step));
  }
  CheckpointStore branch = saver.store({}, collection.path(), 2);
  saver.save_to(branch, 3);
  EXPECT_EQ(steps_in(branch.training()), (Steps{3, 2}));
}

// A process may end in its first save. Its folder goes unless it is locked.
TEST(CheckpointStore, RemovesFoldersOfUnfinishedTrainings) {
  const TemporaryDirectory directory;
  const Saver saver({.directory = directory.path()});
  const fs::path left = directory.path() / "0123abcd-20260101-000000-0000",
                 locked = directory.path() / "0123abcd-20260101-000000-0001",
                 recent = directory.path() / "0123abcd-20260101-000000-0002",
                 other = directory.path() / "other";
  for (const fs::path& folder : {left, locked, recent, other}) {
    fs::create_directory(folder);
    const fs::path file = folder / (checkpoint_name(5) + ".01234567" + std::string(unfinished));
    std::ofstream(file) << "begun";
    if (folder != recent)
      fs::last_write_time(file, fs::last_write_time(file) - std::chrono::hours(25));
  }
  const OpenFile running(locked, O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(running.lock(), Lock::taken);
  const CheckpointStore store = saver.store();
  EXPECT_EQ(names_in(directory.path()),
            (Names{locked.filename(), recent.filename(), store.training().filename(), "other"}));
}

TEST(CheckpointStore, TheNewestIsTheLastCompleteStep) {
  const TemporaryDirectory directory;
  const Saver saver({.directory = directory.path(), .keep = 0});
  EXPECT_TRUE(trainings_in(directory.path() / "nothing").empty());
  saver.save(5);
  const fs::path training = saver.save(7).parent_path();
  fs::last_write_time(training / checkpoint_name(5),
                      fs::last_write_time(training / checkpoint_name(7)) + std::chrono::hours(1));
  EXPECT_EQ(*newest_complete(training), training / checkpoint_name(7));
  fs::resize_file(training / checkpoint_name(7), 4100);
  EXPECT_EQ(*newest_complete(training), training / checkpoint_name(5));
  // It does not keep the training from going on, and is replaced.
  EXPECT_EQ(saver.save(7).parent_path(), training);
  EXPECT_EQ(*newest_complete(training), training / checkpoint_name(7));
  for (const Size step : {5, 7}) fs::resize_file(training / checkpoint_name(step), 4100);
  EXPECT_TRUE(error_of([&] {
                newest_complete(training);
              }).starts_with((training / checkpoint_name(7)).string() + ": has "));
}

TEST(CheckpointStore, OneRunGoesOnWithATraining) {
  const TemporaryDirectory directory;
  const Saver saver({.directory = directory.path()});
  const fs::path training = saver.save(5).parent_path();
  {
    const CheckpointStore store = saver.store({}, training, 5);
    EXPECT_EQ(error_of([&] { saver.store({}, training, 5); }),
              fmt::format("checkpoint.directory = {}: another run goes on with the training in {}: "
                          "wait for its end, or set another directory",
                          directory.path().string(), training.filename().string()));
  }
  CheckpointStore store = saver.store({}, training, 5);
  // Another run saves, on a file system without locks.
  fs::copy_file(training / checkpoint_name(5), training / checkpoint_name(9));
  EXPECT_EQ(error_of([&] { saver.save_to(store, 7); }),
            "checkpoint.directory = " + excerpt(directory.path().string()) +
                ": another run has gone on with this training and saved " +
                (training / checkpoint_name(9)).string() +
                "; this run ends without another checkpoint");
  EXPECT_EQ(steps_in(training), (Steps{9, 5}));
}

TEST(CheckpointStore, LeavesNothingOfSavesThatDidNotHappen) {
  const TemporaryDirectory directory;
  const Saver saver({.directory = directory.path()});
  saver.store();
  EXPECT_EQ(names_in(directory.path()), Names{});
  const fs::path training = saver.save(5).parent_path();
  directory.write((training.filename() / "step_0000000007.safetensors.0.unfinished").string(), "x");
  saver.save(7);
  EXPECT_EQ(names_in(training), (Names{checkpoint_name(5), checkpoint_name(7)}));
}

// Else a full disk would be noticed after half of the file.
TEST(CheckpointStore, ReservesTheSpaceOfAFileFirst) {
  const TemporaryDirectory directory;
  int looked = 0;
  Saver({.directory = directory.path()}).save(1, 1, [&](SavePoint point) {
    if (point != SavePoint::created) return;
    for (const auto& entry : fs::recursive_directory_iterator(directory.path())) {
      struct stat facts {};
      if (!entry.is_regular_file() || stat(entry.path().c_str(), &facts) != 0) continue;
      ++looked;
      EXPECT_GT(facts.st_size, 4096);
      EXPECT_GE(512 * facts.st_blocks, facts.st_size);
    }
  });
  EXPECT_EQ(looked, 1);
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
    const fs::path training = saver.save(1).parent_path();
    EXPECT_THROW(saver.save(2, 1,
                            [&](SavePoint reached) {
                              if (static_cast<std::size_t>(reached) == point)
                                throw Interruption("here");
                            }),
                 std::runtime_error);
    const fs::path newest = *newest_complete(training);
    const bool is_new = static_cast<SavePoint>(point) >= SavePoint::renamed;
    EXPECT_EQ(read_state(newest.string()).step, is_new ? 2 : 1);
    EXPECT_GT(verify_checkpoint(newest.string()), 0);
    saver.save(3);
    EXPECT_EQ(names_in(training), Names{checkpoint_name(3)});
  }
}
INSTANTIATE_TEST_SUITE_P(CheckpointStore, FailedSaves, testing::Bool(),
                         [](const auto& test) { return test.param ? "async" : "sync"; });

// File systems without locks let two runs go on with one training. The one that saves first removes
// the unfinished file of the other one, which must tell the reason and not that a file is missing.
TEST(CheckpointStore, AnotherRunIsNamedWhereverItSavesFirst) {
  for (std::size_t point = 0; point < static_cast<std::size_t>(SavePoint::renamed); ++point) {
    SCOPED_TRACE(names_of<SavePoint>[point]);
    const TemporaryDirectory directory;
    const Saver saver({.directory = directory.path()});
    const fs::path training = saver.save(1).parent_path();
    const auto save_elsewhere = [&](SavePoint reached) {
      if (static_cast<std::size_t>(reached) != point) return;
      fs::copy_file(training / checkpoint_name(1), training / checkpoint_name(3),
                    fs::copy_options::skip_existing);
      for (const std::string& name : names_in(training))
        if (name.ends_with(".unfinished")) fs::remove(training / name);
    };
    EXPECT_EQ(error_of([&] { saver.save(2, 1, save_elsewhere); }, ExitCode::usage),
              "checkpoint.directory = " + directory.path().string() +
                  ": another run has gone on with this training and saved " +
                  (training / checkpoint_name(3)).string() +
                  "; this run ends without another checkpoint");
    EXPECT_EQ(names_in(training), (Names{checkpoint_name(1), checkpoint_name(3)}));
  }
}

TEST(CheckpointStore, OneSaveIsInFlightAtATime) {
  const TemporaryDirectory directory;
  std::promise<void> permission;
  const std::shared_future<void> may_write = permission.get_future().share();
  const auto wait = [&](SavePoint point) {
    if (point == SavePoint::tensor_written) may_write.wait();
  };
  const Saver saver({.directory = directory.path(), .keep = 0, .async = true});
  CheckpointStore store = saver.store(wait);
  const fs::path training = store.training();
  saver.save_to(store, 1);
  EXPECT_EQ(store.written_saves(), 0);
  EXPECT_FALSE(store.is_ready(store.written_saves()));
  EXPECT_EQ(newest_complete(training), std::nullopt);
  permission.set_value();
  while (store.written_saves() == 0) std::this_thread::yield();
  EXPECT_TRUE(store.is_ready(1));
  EXPECT_FALSE(store.is_ready(0));  // another rank has not
  EXPECT_EQ(newest_complete(training), std::nullopt);
  saver.save_to(store, 2);  // waits for the first one
  EXPECT_EQ(newest_complete(training)->filename(), checkpoint_name(1));
  EXPECT_EQ(store.costs().saves, 1);
  store.finish();
  EXPECT_FALSE(store.is_ready(2));
  EXPECT_EQ(newest_complete(training)->filename(), checkpoint_name(2));
}

}  // namespace
}  // namespace tessera
