// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>

#include <tessera/base/view.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/comm/request.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// Messages between neighbouring pipeline stages. A tensor has at most as many messages in flight
/// as copies in the frame.
class StageMessages {
 public:
  explicit StageMessages(const StagePlan& stage) : stage_(stage) {
    for (const Action& action : stage.actions)
      if (action.peer >= 0)
        for (Size copy = 0; copy < copies(action.message()); ++copy)
          requests_.try_emplace({action.message(), copy});
  }

  /// Starts the message of an action on a microbatch. `tensor` is its slot as a vector.
  template <class T>
  void start(const Action& action, Size microbatch, const Communicator& stages,
             const Vector<T>& tensor) {
    const int peer = static_cast<int>(action.peer), tag = static_cast<int>(action.tag);
    request(action, microbatch) = action.is(StepOperation::send)
                                      ? stages.isend(tensor, peer, tag)
                                      : stages.ireceive(tensor, peer, tag);
    ++in_flight_;
  }

  /// Waits until the message has arrived, or until the memory of a sent one may be written again.
  void finish(const Action& action, Size microbatch) {
    request(action, microbatch).wait();
    --in_flight_;
  }

  Size in_flight() const { return in_flight_; }
  void poll() {
    for (auto& [tensor, request] : requests_) request.test();
  }

 private:
  Size copies(SlotId id) const { return stage_.storages[stage_.slots[id].storage].copies; }
  Request& request(const Action& action, Size microbatch) {
    return requests_.at({action.message(), microbatch % copies(action.message())});
  }

  const StagePlan& stage_;
  std::map<std::pair<SlotId, Size>, Request> requests_;  ///< by tensor and copy
  Size in_flight_ = 0;
};

}  // namespace tessera
