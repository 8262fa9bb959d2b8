// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a training: one directory, files "step_0000000120.h5", and `latest`, a file
// with the name of one of them.
#pragma once

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

/// What has been done of a save, in this order: a process may end after any of it.
enum class SavePoint : std::uint8_t {
  begun,           ///< nothing yet
  created,         ///< the file, under a temporary name, and the room for it
  tensor_written,  ///< once for each
  written,         ///< all tensors, and their checksums
  synced,          ///< the file is on the disk
  renamed,         ///< it has its name
  latest_written,  ///< a new `latest` under a temporary name
  latest_renamed,  ///< and it has its name
  cleaned,         ///< checkpoints that are kept no longer are gone
};
template <>
inline constexpr std::array<std::string_view, 9> names_of<SavePoint>{
    "begun",   "created",        "tensor_written", "written", "synced",
    "renamed", "latest_written", "latest_renamed", "cleaned"};

/// Called on every rank; with checkpoint.async at tensor_written by the thread that writes. For
/// tests, which end the process there.
using SaveObserver = std::function<void(SavePoint)>;

/// What the saves of a training have cost this rank.
struct SaveCosts {
  Size saves = 0;
  Size written_bytes = 0;
  double seconds = 0;         ///< in which training stood still
  double waited_seconds = 0;  ///< of these, for threads that had not written everything yet
  double hidden_seconds = 0;  ///< in which this rank's thread wrote while training went on
};

class CheckpointStore {
 public:
  /// Makes the directory, takes it for this run alone as long as the store lives, and removes what
  /// a process that ended in the middle of a save has left. `resumed`: the training that goes on;
  /// none: a new one. Collective, like all but latest(). Throws ConfigError for
  /// checkpoint.directory if it cannot hold checkpoints, if another run uses it, and, without
  /// checkpoint.overwrite, if it has checkpoints of another training.
  CheckpointStore(const CheckpointConfig& config, const Communicator& ranks,
                  SaveObserver observer = {}, const std::optional<std::string>& resumed = {});

  /// Writes a checkpoint and makes it the latest; then removes those of this training that are kept
  /// no longer. Throws the same Error on every rank if it cannot be written, or (wrong_result) if
  /// the state is not finite, and leaves what was there. With
  /// checkpoint.async it copies the state and returns while a thread writes the copy; finish() does
  /// the rest. A save in flight is finished first.
  template <class T>
  void save(const Engine<T>& engine, const TrainingState& state);

  /// How many saves this rank has written its part of. Not collective.
  Size written_saves() const;
  /// Whether finish() has something to do and would not wait. `everywhere`: the smallest
  /// written_saves() of all ranks, as they have agreed.
  bool is_ready(Size everywhere) const { return writing_.valid() && everywhere == begun_; }
  /// Waits for the save in flight, if there is one, and makes it the latest. Throws the same Error
  /// on every rank if it could not be written.
  void finish();

  const SaveCosts& costs() const { return costs_; }
  /// The value of TrainingState::training in the checkpoints of this training.
  const std::string& training() const { return training_; }
  /// The last one that was saved; empty if none was.
  const std::filesystem::path& last() const { return last_; }

  /// The checkpoint to go on from; none if there is none yet. Throws Error if `latest` names one
  /// that is not there.
  static std::optional<std::filesystem::path> latest(const std::filesystem::path& directory);

 private:
  void on_first_rank(const std::function<void()>& action, SavePoint point);
  void reach(SavePoint point) const;
  void write_or_remove(const std::function<void()>& write);
  template <class T>
  void start_writing(const Engine<T>& engine);
  void publish(Size bytes);
  void claim(bool is_new);
  void clean() const;

  /// How the thread of this rank has ended.
  struct Written {
    Outcome outcome{};
    std::vector<Size> sums{};  ///< this rank's part of each tensor's checksum
    double seconds = 0;
  };

  CheckpointConfig config_;
  Communicator ranks_;
  SaveObserver observer_;
  std::string training_;
  // Only rank 0, which manages the directory, has these:
  std::unique_ptr<DirectoryLock> lock_;
  std::set<std::string> own_;  ///< names of the files of this training

  SaveCosts costs_;
  std::filesystem::path last_;
  std::filesystem::path path_;  ///< of the save that has begun last, when it is whole
  Size begun_ = 0;              ///< saves that threads have been given
  std::shared_ptr<Snapshot> snapshot_ = std::make_shared<Snapshot>();
  std::future<Written> writing_;  ///< its destructor waits
};

}  // namespace tessera
