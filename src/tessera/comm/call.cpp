// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include <tessera/comm/call.hpp>
#include <tessera/comm/scratch.hpp>

namespace tessera {
namespace {

using Problem = std::optional<std::string>;

Problem counts_problem(std::span<const Size> counts, int size, Size extent) {
  if (static_cast<Size>(counts.size()) != size) {
    return fmt::format("{} counts for {} ranks", counts.size(), size);
  }
  Size sum = 0;
  for (const Size count : counts) {
    if (count < 0) return fmt::format("a count is negative: {}", count);
    sum += count;
  }
  if (sum != extent)
    return fmt::format("the counts sum to {}, but the View has {} elements", sum, extent);
  return {};
}

/// `share` is this rank's part of `full`. An all_gather may be in place on some ranks; a
/// reduce_scatter must be on all ranks or on none, so that it needs the flag.
Problem share_problem(const Call& call, const Buffer& share, const Buffer& full, int size,
                      int rank) {
  if (!call.balanced) {
    if (Problem problem = counts_problem(call.counts, size, full.count)) return problem;
  }
  const Range own = share_of(call, size, rank);
  if (share.count != own.count) {
    return fmt::format("rank {}'s share of {} elements is {}, but its View has {}", rank,
                       full.count, own.count, share.count);
  }
  const bool may_be_in_place = call.operation == Operation::all_gather || call.in_place;
  const bool in_place = may_be_in_place && share.data == full.at(own.begin);
  if (overlap(share, full) && !in_place) return "the two Views overlap";
  return {};
}

Problem scratch_problem(const Call& call, int size, int rank) {
  if (!call.scratch) return {};
  const Size share = share_of(call, size, rank).count;
  const Size needed = reduce_scatter_scratch(call.in.count, share, size, call.in.type);
  if (!call.scratch->contiguous) return "the scratch View is not contiguous";
  if (call.scratch->type != call.in.type) return "the scratch View has a different element type";
  if (call.scratch->count < needed) {
    return fmt::format("the scratch View has {} elements, but {} are needed", call.scratch->count,
                       needed);
  }
  if (overlap(*call.scratch, call.in) || overlap(*call.scratch, call.out)) {
    return "the scratch View overlaps another View";
  }
  return {};
}

Problem peer_problem(const Call& call, int size) {
  if (call.peer >= 0 && call.peer < size) return {};
  return fmt::format("rank {} is outside 0..{}", call.peer, size - 1);
}

}  // namespace

Range share_of(const Call& call, int size, int rank) {
  if (call.balanced) return balanced_split(call.full().count, size, rank);
  const auto begin = call.counts.begin();
  return {std::accumulate(begin, begin + rank, Size{0}), call.counts[rank]};
}

bool is_even(const Call& call, int size) {
  if (call.balanced) return call.full().count % size == 0;
  return std::ranges::all_of(call.counts, [&](Size count) { return count == call.counts[0]; });
}

Problem find_problem(const Call& call, int size, int rank, int max_tag) {
  if (!call.in.contiguous || !call.out.contiguous) return "the View is not contiguous";
  if (is_reduction(call.operation) && is_half(call.in.type) && call.op != ReduceOp::sum)
    return fmt::format("{} can only be summed over ranks", name_of(call.in.type));
  switch (call.operation) {
    case Operation::reduce_scatter:
      if (Problem problem = share_problem(call, call.out, call.in, size, rank)) return problem;
      return scratch_problem(call, size, rank);
    case Operation::all_gather:
      return share_problem(call, call.in, call.out, size, rank);
    case Operation::all_to_all: {
      if (Problem problem = counts_problem(call.counts, size, call.in.count)) return problem;
      if (Problem problem = counts_problem(call.receive_counts, size, call.out.count)) {
        return problem;
      }
      const Size sent = call.counts[rank];
      const Size received = call.receive_counts[rank];
      if (sent != received) {
        return fmt::format("rank {} sends itself {} elements but receives {}", rank, sent,
                           received);
      }
      if (overlap(call.in, call.out)) return "the two Views overlap";
      return {};
    }
    case Operation::broadcast:
      return peer_problem(call, size);
    case Operation::send:
    case Operation::receive:
      if (Problem problem = peer_problem(call, size)) return problem;
      if (call.peer == rank) return "a rank cannot send a message to itself";
      if (call.tag < 0 || call.tag > max_tag) {
        return fmt::format("tag {} is outside 0..{}", call.tag, max_tag);
      }
      return {};
    case Operation::all_reduce:
      if (call.out.rows != 1) return "the terms of all ranks are no whole tree";
      return {};
    case Operation::barrier:
    case Operation::split:
    case Operation::agree:
      return {};
  }
  return {};
}

std::string describe(const Call& call, std::string_view axis) {
  return fmt::format("{} over axis {} at {}", name_of(call.operation), axis, to_string(call.site));
}

}  // namespace tessera
