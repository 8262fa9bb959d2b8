// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include <tessera/base/view.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/comm/request.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// Messages between pipeline stages or the neighbours in a ring. At most one message with a tag is
/// in flight per instance of its tensor's memory (Storage::instances). The plan must outlive this
/// object.
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
    Request& request = request_of(message, microbatch);
    request = message.sends ? stages.isend(tensor, peer, tag) : stages.ireceive(tensor, peer, tag);
    in_flight_.push_back(&request);
  }

  /// Waits until a received message has arrived, or until the memory of a sent one may be
  /// overwritten.
  void finish(const Message& message, Size microbatch) {
    Request& request = request_of(message, microbatch);
    request.wait();
    std::erase(in_flight_, &request);
  }

  /// Returns the number of messages that are started and not yet finished.
  Size in_flight() const { return std::ssize(in_flight_); }
  /// Lets MPI make progress on these messages.
  void poll() {
    for (Request* request : in_flight_) request->test();
  }

 private:
  Size instances(SlotId id) const { return stage_.storages[stage_.slots[id].storage].instances; }
  Request& request_of(const Message& message, Size microbatch) {
    return requests_.at({message.tensor, message.tag, microbatch % instances(message.tensor)});
  }

  const StagePlan& stage_;
  /// The requests, by tensor, tag and instance.
  std::map<std::tuple<SlotId, Size, Size>, Request> requests_;
  std::vector<Request*> in_flight_;
};

}  // namespace tessera
