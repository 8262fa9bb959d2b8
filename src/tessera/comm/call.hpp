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

namespace tessera {

/// One call of a communicator as the typed front end hands it down.
///
///   operation       in                   out                   counts
///   all_reduce      v                    v
///   reduce_scatter  all shares           own share             shares, one per rank
///   all_gather      own share            all shares            shares, one per rank
///   broadcast       v                    v
///   all_to_all      parts by receiver    parts by sender       parts sent, one per rank
///   send, receive   v                    v
///
/// In place, the own share of a reduce_scatter lies in `in` where it belongs.
struct Call {
  Operation operation = Operation::barrier;
  Site site{};
  Buffer in{};
  Buffer out{};
  ReduceOp op = ReduceOp::sum;
  int peer = -1;  ///< root of a broadcast, destination of a send, source of a receive
  int tag = 0;
  bool in_place = false;  ///< of a reduce_scatter, the same on all ranks
  bool balanced = false;  ///< shares are the balanced split of the full buffer; no counts
  std::span<const Size> counts{};
  std::span<const Size> receive_counts{};  ///< all_to_all: parts received, one per rank
  /// Of a started reduce_scatter: where the other ranks' shares may arrive (scratch.hpp).
  std::optional<Buffer> scratch{};

  /// The full logical buffer: what the ledger counts. Of an all_to_all the part of this rank.
  const Buffer& full() const { return operation == Operation::all_gather ? out : in; }
};

/// The elements of the full buffer that belong to `rank` in a reduce_scatter or all_gather.
Range share_of(const Call& call, int size, int rank);

/// Whether all shares of a reduce_scatter or all_gather have the same number of elements.
bool is_even(const Call& call, int size);

/// What is wrong with the call on this rank alone: memory that is not contiguous, extents that do
/// not match, a peer out of range, overlapping memory. Nothing when all is well.
std::optional<std::string> find_problem(const Call& call, int size, int rank, int max_tag);

/// "all_reduce over axis data at trainer.cpp:42".
std::string describe(const Call& call, std::string_view axis);

}  // namespace tessera
