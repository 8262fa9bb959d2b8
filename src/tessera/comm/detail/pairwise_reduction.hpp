// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <mpi.h>

#include <tessera/comm/detail/host_blocks.hpp>
#include <tessera/comm/detail/transport.hpp>

namespace tessera::detail {

/// A reduce_scatter on host memory in pairs of messages: every rank sends all others their shares
/// and adds what comes for its own, always in the same order. Shares go in pieces of at most
/// `limit` elements, which are still in the cache when they are added.
///
/// MPI's own functions receive into memory that they take from the system and give back at every
/// call; its page faults cost many times the messages. Those that only start also need somebody to
/// drive them on, and nobody does while the caller computes. Here the memory is kept, and all
/// messages are on their way from the beginning.
class PairwiseReduction final : public PendingCall {
 public:
  struct Ranks {
    MPI_Comm comm;
    int rank, size;
  };

  /// Starts. With few `slots`, the memory for as many pieces, later messages are received in
  /// advance(): for callers that wait at once, as no other call may come between. 0: all messages
  /// have room, in the call's own scratch if the host reaches that.
  PairwiseReduction(const Call& call, MPI_Datatype type, MPI_Op op, const Ranks& ranks, Size limit,
                    Size slots, HostBlockPool& pool);
  PairwiseReduction(const PairwiseReduction&) = delete;
  PairwiseReduction& operator=(const PairwiseReduction&) = delete;
  ~PairwiseReduction() override;

  bool advance(bool to_the_end) override;

 private:
  void send_shares(const Call& call, Size limit);
  void receive(Size message);
  void add(Size message);

  /// The piece of the own share that a message carries, and where it arrives.
  Range piece_of(Size message) const {
    return balanced_split(out_.count, pieces_, message % pieces_);
  }
  void* slot_of(Size message) const {
    const Size element = slots_ < messages_
                             ? message % slots_ * largest_
                             : message / pieces_ * out_.count + piece_of(message).begin;
    return memory_ + element * size_of(out_.type);
  }

  Site site_;
  MPI_Datatype type_;
  MPI_Op op_;
  Ranks ranks_;
  Buffer own_, out_;  ///< the own share before and after
  Size pieces_;       ///< of the own share
  Size messages_;     ///< that come for it: its pieces from one rank after the other
  Size slots_;
  Size largest_;  ///< elements of a slot
  HostBlockPool& pool_;
  HostBlock block_;  ///< empty with memory of the caller
  char* memory_;     ///< where messages arrive
  std::vector<MPI_Request> receives_, sends_;
  Size added_ = 0, sent_ = 0;
};

}  // namespace tessera::detail
