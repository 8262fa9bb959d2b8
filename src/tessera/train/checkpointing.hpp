// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include <nlohmann/json.hpp>

#include <tessera/base/timer.hpp>
#include <tessera/checkpoint/checkpoint_store.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/comm/request.hpp>
#include <tessera/config/config.hpp>

namespace tessera {

/// How a training writes checkpoints, and what stops it early.
struct Checkpointing {
  CheckpointConfig config{};
  /// Called on every rank after each step if checkpoints are enabled. If it returns true on any
  /// rank, all ranks save a checkpoint and stop after the next step.
  std::function<bool()> wants_to_stop{};
  nlohmann::json provenance = nlohmann::json::object();  ///< part of every checkpoint
  SaveObserver observer{};
};

/// The next move after a step. The largest value of any rank wins.
enum class NextMove : std::uint8_t { go_on, save, stop };

/// Decides after each step if a checkpoint is due and if the training stops, the same on all ranks.
/// Ranks agree on clocks and signals while the next step runs, so these act one step later.
class SaveSchedule {
 public:
  /// Collective over `ranks`, like after_step() and finish().
  SaveSchedule(const Checkpointing& checkpointing, const Communicator& ranks);

  /// `steps`: steps made; `written_saves`: CheckpointStore::written_saves() of this rank.
  NextMove after_step(Size steps, Size written_saves);
  /// Returns the smallest written_saves of all ranks after the previous step.
  Size written_everywhere() const { return written_everywhere_; }
  /// Restarts the time to the next checkpoint.
  void saved() { since_save_.restart(); }
  /// Ends the agreement of the last step.
  void finish() { agreement_.wait(); }

 private:
  NextMove own_wish() const;

  CheckpointConfig config_;
  std::function<bool()> wants_to_stop_;
  Communicator ranks_;
  Timer since_save_;
  /// A move and minus the number of written saves, reduced with max.
  Kokkos::View<Size[2], Kokkos::HostSpace> wish_{"tessera::next_move"};
  Request agreement_;
  Size written_everywhere_ = 0;
};

}  // namespace tessera
