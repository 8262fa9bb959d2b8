// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tessera/base/site.hpp>
#include <tessera/base/split.hpp>
#include <tessera/comm/buffer.hpp>
#include <tessera/comm/operation.hpp>
#include <tessera/comm/sum_tree.hpp>

namespace tessera {

/// One call of a communicator, without the types of its Views.
///
///   operation       in                   out                   counts
///   all_reduce      v                    v
///   reduce_scatter  all shares           own share             shares, one per rank
///   all_gather      own share            all shares            shares, one per rank
///   broadcast       v                    v
///   all_to_all      parts by receiver    parts by sender       parts sent, one per rank
///   send, receive   v                    v
///
/// If a reduce_scatter is in place, `out` is this rank's share inside of `in`.
struct Call {
  Operation operation = Operation::barrier;
  Site site{};
  Buffer in{};
  Buffer out{};
  ReduceOp op = ReduceOp::sum;
  int peer = -1;  ///< root of a broadcast, destination of a send, source of a receive
  int tag = 0;
  bool in_place = false;  ///< only of a reduce_scatter; the same on all ranks
  /// The order in which the terms of a sum are added, if another one could give other bits.
  const SumTree* tree = nullptr;
  bool balanced = false;  ///< shares are the balanced split of the full buffer; counts is empty
  std::span<const Size> counts{};
  std::span<const Size> receive_counts{};  ///< of an all_to_all: parts received, one per rank
  /// Memory in which a non-blocking reduce_scatter receives the shares of other ranks
  /// (scratch.hpp).
  std::optional<Buffer> scratch{};

  /// The full logical buffer, whose bytes the ledger counts. For an all_to_all it is what this rank
  /// sends.
  const Buffer& full() const { return operation == Operation::all_gather ? out : in; }
};

/// Returns the share of `rank` in the full buffer of a reduce_scatter or all_gather.
Range share_of(const Call& call, int size, int rank);

/// Returns whether all shares of a reduce_scatter or all_gather have the same size.
bool is_even(const Call& call, int size);

/// Returns what is wrong with the call, as far as this rank can tell: memory that is not
/// contiguous, extents that do not match, a peer out of range, overlapping memory. Returns nothing
/// if the call is valid.
std::optional<std::string> find_problem(const Call& call, int size, int rank, int max_tag);

/// "all_reduce over axis data at trainer.cpp:42".
std::string describe(const Call& call, std::string_view axis);

}  // namespace tessera
