// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>

#include <tessera/base/view.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/comm/request.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// Messages between neighbouring pipeline stages or ranks of `context`. A tensor has at most one
/// message in flight per instance of its memory (Storage::instances). The plan must outlive this
/// object.
class StageMessages {
 public:
  explicit StageMessages(const StagePlan& stage) : stage_(stage) {
    for (const Action& action : stage.actions)
      if (action.is(StepOperation::send) || action.is(StepOperation::receive))
        for (Size i = 0; i < instances(action.message()); ++i)
          requests_.try_emplace({action.message(), i});
  }

  /// Starts the message of an action on a microbatch. `tensor` is the slot of the message.
  template <class T>
  void start(const Action& action, Size microbatch, const Communicator& stages,
             const Vector<T>& tensor) {
    const bool sends = action.is(StepOperation::send);
    const int around = (stages.rank() + (sends ? 1 : stages.size() - 1)) % stages.size(),
              peer = action.peer < 0 ? around : static_cast<int>(action.peer),
              tag = static_cast<int>(action.tag);
    request(action, microbatch) =
        sends ? stages.isend(tensor, peer, tag) : stages.ireceive(tensor, peer, tag);
    ++in_flight_;
  }

  /// Waits until a received message has arrived, or until the memory of a sent one may be
  /// overwritten.
  void finish(const Action& action, Size microbatch) {
    request(action, microbatch).wait();
    --in_flight_;
  }

  /// Returns the number of messages that are started and not yet finished.
  Size in_flight() const { return in_flight_; }
  /// Lets MPI make progress on these messages.
  void poll() {
    for (auto& [tensor, request] : requests_) request.test();
  }

 private:
  Size instances(SlotId id) const { return stage_.storages[stage_.slots[id].storage].instances; }
  Request& request(const Action& action, Size microbatch) {
    return requests_.at({action.message(), microbatch % instances(action.message())});
  }

  const StagePlan& stage_;
  std::map<std::pair<SlotId, Size>, Request> requests_;  ///< by tensor and instance
  Size in_flight_ = 0;
};

}  // namespace tessera
