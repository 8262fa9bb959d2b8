// SPDX-License-Identifier: Apache-2.0
// The checkpoints of one training: a folder with a file per saved step.
#pragma once

#include <array>
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
#include <tessera/checkpoint/tensors.hpp>
#include <tessera/config/config.hpp>
#include <tessera/io/durable_file.hpp>
#include <tessera/process/outcome.hpp>

namespace tessera {

/// The points of a save, in this order. A process may end at any of them.
enum class SavePoint : std::uint8_t {
  begun,           ///< nothing is done
  created,         ///< the file has a temporary name and its space
  tensor_written,  ///< one tensor is written; reached once per tensor of which the rank has a part
  written,         ///< all tensors are on the disk
  synced,          ///< the header, too
  renamed,         ///< the file has its name
  cleaned,         ///< old checkpoints are removed
};
template <>
inline constexpr std::array<std::string_view, 7> names_of<SavePoint>{
    "begun", "created", "tensor_written", "written", "synced", "renamed", "cleaned"};

/// Called on every rank; at tensor_written of an async save, by the writing thread. For tests.
using SaveObserver = std::function<void(SavePoint)>;

/// Costs of a training's saves on this rank.
struct SaveCosts {
  Size saves = 0;
  Size written_bytes = 0;
  double seconds = 0;         ///< training waited so long
  double waited_seconds = 0;  ///< part of these, spent waiting for writing threads
  double hidden_seconds = 0;  ///< this rank's thread wrote so long while training continued
};

/// The state that a training goes on from.
struct ResumedFrom {
  std::filesystem::path training{};  ///< folder of its checkpoint
  Size step = 0;
  std::string origin{};  ///< TrainingState::training of the checkpoint
};

/// The training that a store saves.
struct TrainingStart {
  std::string fingerprint = "training";  ///< begins the name of a new folder
  std::optional<ResumedFrom> resumed{};
  Size turns = 0;  ///< hosts that write one after another; 0: as the file system demands
};

class CheckpointStore {
 public:
  /// Goes on in the folder of the resumed training if that is in checkpoint.directory and has no
  /// later checkpoint. Otherwise makes a folder. Throws ConfigError if the directory cannot hold
  /// checkpoints, if the ranks do not share it, or if another run has locked the folder.
  /// Collective, like save() and finish().
  CheckpointStore(const CheckpointConfig& config, const Communicator& ranks,
                  SaveObserver observer = {}, const TrainingStart& start = {});
  /// Removes an unfinished file, and a folder without files.
  ~CheckpointStore();
  CheckpointStore(CheckpointStore&&) = default;
  CheckpointStore& operator=(CheckpointStore&&) = delete;

  /// Finishes a save in flight, writes a checkpoint and removes old ones. With checkpoint.async it
  /// copies the state and returns while a thread writes the copy; finish() does the rest. Throws
  /// the same Error on every rank if the file cannot be written or another run has gone on with
  /// this training, (wrong_result) if the state is not finite.
  template <class T>
  void save(const Engine<T>& engine, const TrainingState& state);

  /// Returns the number of async saves of which this rank has written its part. Not collective.
  Size written_saves() const;
  /// Returns true if a save is in flight and finish() would not wait. `everywhere`: the smallest
  /// written_saves() of all ranks.
  bool is_ready(Size everywhere) const { return writing_.valid() && everywhere == begun_; }
  /// Waits for the save in flight, if any, and completes it. Throws the same Error on every rank if
  /// it could not be written.
  void finish();

  /// Returns false after a save that failed because another run has gone on with this training.
  bool is_alone() const { return is_alone_; }
  const SaveCosts& costs() const { return costs_; }
  /// Returns the folder of this training.
  const std::filesystem::path& training() const { return training_; }
  /// Returns the last checkpoint that was saved; empty if none was.
  const std::filesystem::path& last() const { return last_; }

  /// Returns the checkpoint of this training with the smallest TrainingState::loss(), the oldest of
  /// equal ones; empty if there is none after an epoch. Collective.
  std::filesystem::path best() const;

 private:
  using Sums = std::vector<std::uint64_t>;
  /// The result of this rank's writing thread.
  struct Written {
    Outcome outcome{};
    Sums sums{};
    std::chrono::steady_clock::time_point began{}, ended{};
  };

  void open_training(const TrainingStart& start);
  void try_saving();
  void check_shared(const std::filesystem::path& file) const;
  void reach(SavePoint point) const;
  void on_first_rank(const std::function<void()>& action, SavePoint point);
  void write_or_remove(const std::function<void()>& write);
  void create(const TrainingState& state, const std::vector<CheckpointTensor>& tensors);
  void by_turns(const std::function<void()>& write) const;
  template <class T>
  void start_writing(const Engine<T>& engine);
  void publish(const Sums& sums);
  void check_alone();
  void check_own_steps() const;
  void take_history() const;
  std::filesystem::path temporary() const;

  CheckpointConfig config_;
  Communicator ranks_;
  SaveObserver observer_;
  std::vector<Size> hosts_{};  ///< host of each rank, as its lowest rank
  Size turns_ = 1, turn_ = 0;  ///< hosts that write one after another, and number of this one
  std::filesystem::path training_{};  ///< folder
  // Set on rank 0, which manages the folder:
  std::shared_ptr<const OpenFile> folder_{};  ///< holds the lock
  ResumedFrom history_{};                     ///< of which a new folder gets the checkpoints
  std::set<Size> own_{};                      ///< steps that this run has saved
  Size first_ = -1;                           ///< step from which it goes on
  std::string run_{};                         ///< part of temporary names that no other run has

  bool is_alone_ = true;
  SaveCosts costs_;
  std::filesystem::path last_;
  // The last save that has begun:
  TrainingState state_{};
  std::filesystem::path path_{};
  TensorFile file_{};
  Size bytes_ = 0;  ///< that this rank writes
  Size begun_ = 0;  ///< async saves that have begun
  std::shared_ptr<Snapshot> snapshot_ = std::make_shared<Snapshot>();
  std::future<Written> writing_;  ///< its destructor waits
};

}  // namespace tessera
