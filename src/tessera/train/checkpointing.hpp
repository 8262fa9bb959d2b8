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

/// How a training keeps checkpoints, and what ends it early.
struct Checkpointing {
  CheckpointConfig config{};
  /// Asked on every rank after each step. If any of them wants to, all stop after the next step,
  /// with a checkpoint. Not asked without checkpoints.
  std::function<bool()> wants_to_stop{};
  nlohmann::json provenance = nlohmann::json::object();  ///< written to every checkpoint
  SaveObserver observer{};
};

/// What follows a step: the larger of two wishes wins.
enum class NextMove : std::uint8_t { go_on, save, stop };

/// Decides after each step whether a checkpoint is due and whether the training stops, the same on
/// all ranks. What depends on a rank's clock or on a signal that it got is agreed on while the next
/// step runs, and takes effect after that one.
class SaveSchedule {
 public:
  /// Collective over `ranks`, like after_step() and finish().
  SaveSchedule(const Checkpointing& checkpointing, const Communicator& ranks);

  /// `steps`: how many have been made; `written_saves`: what the store of this rank says.
  NextMove after_step(Size steps, Size written_saves);
  /// The smallest number of written saves of any rank, as they said after the step before.
  Size written_everywhere() const { return written_everywhere_; }
  /// Begins the minutes to the next checkpoint.
  void saved() { since_save_.restart(); }
  /// After the last step.
  void finish() { agreement_.wait(); }

 private:
  NextMove own_wish() const;

  CheckpointConfig config_;
  std::function<bool()> wants_to_stop_;
  Communicator ranks_;
  Timer since_save_;
  /// A move, and minus the number of written saves: the largest of any rank counts.
  Kokkos::View<Size[2], Kokkos::HostSpace> wish_{"tessera::next_move"};
  Request agreement_;
  Size written_everywhere_ = 0;
};

}  // namespace tessera
