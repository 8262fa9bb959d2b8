// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <mpi.h>

#include <tessera/comm/detail/host_blocks.hpp>
#include <tessera/comm/detail/transport.hpp>

namespace tessera::detail {

/// A reduce_scatter in host memory with pairwise messages. Every rank sends all other ranks their
/// shares in pieces of at most `limit` elements. It adds a piece of its own share once those of all
/// ranks are there: in the order of the ranks from its own one back or, with Call::tree, in a tree.
class PairwiseReduction final : public PendingCall {
 public:
  struct Ranks {
    MPI_Comm comm;
    int rank, size;
  };

  /// Starts the call. `slots` is the number of pieces, from all ranks, for which there is memory;
  /// advance() receives the other pieces later, so the caller must wait before any other call. 0
  /// means memory for all pieces: the scratch of the call, if it is large enough.
  PairwiseReduction(const Call& call, MPI_Datatype type, MPI_Op op, const Ranks& ranks, Size limit,
                    Size slots, HostBlockPool& pool);
  PairwiseReduction(const PairwiseReduction&) = delete;
  PairwiseReduction& operator=(const PairwiseReduction&) = delete;
  ~PairwiseReduction() override;

  bool advance(bool to_the_end) override;

 private:
  void send_shares(const Call& call, Size limit);
  void receive(Size piece);
  void add(Size piece);
  Range piece(Size number) const { return balanced_split(out_.count, pieces_, number); }
  /// Returns the address of a term of a piece.
  char* place_of(const SumTree::Term& term, Size piece) const;

  Site site_;
  MPI_Datatype type_;
  MPI_Op op_;
  Ranks ranks_;
  Buffer own_, out_;  ///< the own share before and after
  /// In the order of additions. Rows of other ranks are numbered as they are received.
  std::vector<SumTree::Term> terms_;
  Size received_rows_;   ///< that others send
  Size pieces_, slots_;  ///< of the own share, and those for which there is memory
  HostBlockPool& pool_;
  HostBlock block_;  ///< empty if the caller gave a scratch
  char* memory_;     ///< in which messages arrive
  std::vector<double> sums_;
  std::vector<MPI_Request> receives_, sends_;  ///< receives by piece and row
  Size arrived_ = 0, added_ = 0, sent_ = 0;
};

}  // namespace tessera::detail
