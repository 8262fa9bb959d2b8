// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <tuple>

#include <tessera/base/view.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/comm/request.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// Messages between neighbouring pipeline stages or ranks of `context`. At most one message with a
/// tag is in flight per instance of its tensor's memory (Storage::instances). The plan must outlive
/// this object.
class StageMessages {
 public:
  explicit StageMessages(const StagePlan& stage) : stage_(stage) {
    for (const ListedAction& listed : stage.actions)
      if (const auto* message = listed.as<Message>())
        for (Size i = 0; i < instances(message->tensor); ++i)
          requests_.try_emplace({message->tensor, message->tag, i});
  }

  /// Starts a message of a microbatch. `tensor` is Message::tensor.
  template <class T>
  void start(const Message& message, Size microbatch, const Communicator& stages,
             const Vector<T>& tensor) {
    const int around = (stages.rank() + (message.sends ? 1 : stages.size() - 1)) % stages.size(),
              peer = message.peer < 0 ? around : static_cast<int>(message.peer),
              tag = static_cast<int>(message.tag);
    request(message, microbatch) =
        message.sends ? stages.isend(tensor, peer, tag) : stages.ireceive(tensor, peer, tag);
    ++in_flight_;
  }

  /// Waits until a received message has arrived, or until the memory of a sent one may be
  /// overwritten.
  void finish(const Message& message, Size microbatch) {
    request(message, microbatch).wait();
    --in_flight_;
  }

  /// Returns the number of messages that are started and not yet finished.
  Size in_flight() const { return in_flight_; }
  /// Lets MPI make progress on these messages.
  void poll() {
    for (auto& [key, request] : requests_) request.test();
  }

 private:
  Size instances(SlotId id) const { return stage_.storages[stage_.slots[id].storage].instances; }
  Request& request(const Message& message, Size microbatch) {
    return requests_.at({message.tensor, message.tag, microbatch % instances(message.tensor)});
  }

  const StagePlan& stage_;
  /// The requests, by tensor, tag and instance.
  std::map<std::tuple<SlotId, Size, Size>, Request> requests_;
  Size in_flight_ = 0;
};

}  // namespace tessera
