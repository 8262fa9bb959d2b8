// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <mpi.h>

#include <tessera/comm/detail/host_blocks.hpp>
#include <tessera/comm/detail/transport.hpp>

namespace tessera::detail {

/// A reduce_scatter in host memory with pairwise messages. Every rank sends all other ranks their
/// shares, and adds the messages for its own share in the order of the ranks from its own one on
/// or, with Call::in_tree, in a tree over the ranks. Shares are sent in pieces of at most `limit`
/// elements, which are still in the cache when they are added.
class PairwiseReduction final : public PendingCall {
 public:
  struct Ranks {
    MPI_Comm comm;
    int rank, size;
  };

  /// Starts the call. `slots` is the number of pieces for which there is memory; advance() receives
  /// the other pieces later, so the caller must wait before any other call. 0, which a tree needs,
  /// means memory for all pieces: the scratch of the call, if it is large enough.
  PairwiseReduction(const Call& call, MPI_Datatype type, MPI_Op op, const Ranks& ranks, Size limit,
                    Size slots, HostBlockPool& pool);
  PairwiseReduction(const PairwiseReduction&) = delete;
  PairwiseReduction& operator=(const PairwiseReduction&) = delete;
  ~PairwiseReduction() override;

  bool advance(bool to_the_end) override;

 private:
  void send_shares(const Call& call, Size limit);
  int receiver(int step) const;
  int sender(int step) const;
  void receive(Size message);
  void add(Size message);

  /// Returns the piece of the own share that a message carries.
  Range piece_of(Size message) const {
    return balanced_split(out_.count, pieces_, message % pieces_);
  }
  /// Returns the address at which a message arrives.
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
  bool in_tree_;
  Size pieces_;    ///< of the own share
  Size messages_;  ///< to receive: all pieces from one rank, then from the next
  Size slots_;
  Size largest_;  ///< elements of a slot
  HostBlockPool& pool_;
  HostBlock block_;  ///< empty if the caller gave a scratch
  char* memory_;     ///< in which messages arrive
  std::vector<MPI_Request> receives_, sends_;
  Size added_ = 0, sent_ = 0;
};

}  // namespace tessera::detail
