// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a training: a directory with files "step_0000000120.h5" and the file `latest`,
// which holds the name of one of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/names.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/directory_lock.hpp>
#include <tessera/checkpoint/snapshot.hpp>
#include <tessera/config/config.hpp>
#include <tessera/process/outcome.hpp>

namespace tessera {

/// The points of a save, in this order. A process may end at any of them.
enum class SavePoint : std::uint8_t {
  begun,           ///< nothing is done
  created,         ///< the file has a temporary name and its space
  tensor_written,  ///< one tensor is written; reached once per tensor
  written,         ///< all tensors and their checksums are written
  synced,          ///< the file is on the disk
  renamed,         ///< the file has its name
  latest_written,  ///< the new `latest` has a temporary name
  latest_renamed,  ///< the new `latest` has its name
  cleaned,         ///< old checkpoints are removed
};
template <>
inline constexpr std::array<std::string_view, 9> names_of<SavePoint>{
    "begun",   "created",        "tensor_written", "written", "synced",
    "renamed", "latest_written", "latest_renamed", "cleaned"};

/// Called on every rank; at tensor_written of an async save, by the writing thread. Tests end the
/// process in it.
using SaveObserver = std::function<void(SavePoint)>;

/// Costs of a training's saves on this rank.
struct SaveCosts {
  Size saves = 0;
  Size written_bytes = 0;
  double seconds = 0;         ///< training waited so long
  double waited_seconds = 0;  ///< part of these, spent waiting for writing threads
  double hidden_seconds = 0;  ///< this rank's thread wrote so long while training continued
};

/// The state that a training resumes from.
struct ResumedFrom {
  std::string training{};  ///< TrainingState::training
  Size step = 0;
};

class CheckpointStore {
 public:
  /// Makes the directory, locks it while the store lives, and removes unfinished files. Without
  /// `resumed`, the training is new. Checkpoints of later steps than the resumed one are no longer
  /// those of this training. Throws ConfigError for checkpoint.directory if it cannot hold
  /// checkpoints, if the ranks do not share it, if another run uses it, or, without
  /// checkpoint.overwrite, if it has checkpoints of another training. Collective, like save() and
  /// finish().
  CheckpointStore(const CheckpointConfig& config, const Communicator& ranks,
                  SaveObserver observer = {}, const std::optional<ResumedFrom>& resumed = {});

  /// Writes a checkpoint, makes it the latest and removes old ones of this training. With
  /// checkpoint.async it copies the state and returns while a thread writes the copy; finish() does
  /// the rest. Finishes a save in flight first. Throws the same Error on every rank if the file
  /// cannot be written, (wrong_result) if the state is not finite; earlier checkpoints stay.
  template <class T>
  void save(const Engine<T>& engine, const TrainingState& state);

  /// Returns the number of async saves of which this rank has written its part. Not collective.
  Size written_saves() const;
  /// Returns true if a save is in flight and finish() would not wait. `everywhere`: the smallest
  /// written_saves() of all ranks.
  bool is_ready(Size everywhere) const { return writing_.valid() && everywhere == begun_; }
  /// Waits for the save in flight, if any, and makes it the latest. Throws the same Error on every
  /// rank if it could not be written.
  void finish();

  const SaveCosts& costs() const { return costs_; }
  /// Returns TrainingState::training of this training.
  const std::string& training() const { return training_; }
  /// Returns the last checkpoint that was saved; empty if none was.
  const std::filesystem::path& last() const { return last_; }

  /// Returns the checkpoint of this training with the smallest TrainingState::loss(), the oldest of
  /// equal ones; empty if there is none after an epoch. Collective.
  std::filesystem::path best() const;

  /// Returns the checkpoint to resume from, if there is one: that of `latest`. If it does not
  /// exist, returns the complete one of the latest step, with a warning if `latest` names another.
  /// Throws Error (usage) if no checkpoint is complete.
  static std::optional<std::filesystem::path> latest(const std::filesystem::path& directory);

 private:
  void on_first_rank(const std::function<void()>& action, SavePoint point);
  void reach(SavePoint point) const;
  void write_or_remove(const std::function<void()>& write);
  template <class T>
  void start_writing(const Engine<T>& engine);
  void publish(Size bytes);
  void claim(const std::optional<ResumedFrom>& resumed);
  void check_shared() const;
  void clean() const;

  /// The result of this rank's writing thread.
  struct Written {
    Outcome outcome{};
    std::vector<Size> sums{};  ///< this rank's part of each tensor's checksum
    std::chrono::steady_clock::time_point began{}, ended{};
  };

  CheckpointConfig config_;
  Communicator ranks_;
  SaveObserver observer_;
  std::string training_;
  std::string lock_owner_;  ///< DirectoryLock::owner() of rank 0
  // Set on rank 0, which manages the directory:
  std::unique_ptr<DirectoryLock> lock_;
  std::set<std::string> own_;        ///< names of the files of this training
  std::set<std::string> abandoned_;  ///< names of the files of its branches that it has left

  SaveCosts costs_;
  std::filesystem::path last_;
  std::filesystem::path path_;  ///< final path of the last save that has begun
  Size begun_ = 0;              ///< async saves that have begun
  std::shared_ptr<Snapshot> snapshot_ = std::make_shared<Snapshot>();
  std::future<Written> writing_;  ///< its destructor waits
};

}  // namespace tessera
