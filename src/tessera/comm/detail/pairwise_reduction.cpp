// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include <tessera/comm/detail/mpi_handle.hpp>
#include <tessera/comm/detail/pairwise_reduction.hpp>

namespace tessera::detail {
namespace {

constexpr int tag = 0;          // messages of one rank arrive in the order of the calls
constexpr Size at_once = 2048;  // elements of a row of sums, which stays in the cache

Size pieces_of(Size count, Size limit) { return (count + limit - 1) / limit; }

}  // namespace

PairwiseReduction::PairwiseReduction(const Call& call, MPI_Datatype type, MPI_Op op,
                                     const Ranks& ranks, Size limit, Size slots,
                                     HostBlockPool& pool)
    : site_(call.site), type_(type), op_(op), ranks_(ranks), out_(call.out), pool_(pool) {
  const Range share = share_of(call, ranks.size, ranks.rank);
  own_ = call.in.slice(share.begin, share.count);
  // Receives first from the previous rank, which sends to this one first.
  for (int step = 0; !call.tree && step < ranks.size; ++step)
    terms_.push_back({{}, (ranks.rank - step + ranks.size) % ranks.size, 0, step > 0 ? 1 : 0});
  if (call.tree) terms_ = call.tree->terms;
  received_rows_ = 0;
  for (SumTree::Term& term : terms_)
    if (term.rank != ranks.rank) term.row = received_rows_++;
  pieces_ = pieces_of(share.count, limit);
  slots_ = slots == 0 ? pieces_ : std::min(slots, pieces_);
  const Size room = received_rows_ * (slots_ < pieces_ ? slots_ * piece(0).count : share.count);
  if (slots == 0 && call.scratch && call.scratch->host_accessible && call.scratch->count >= room) {
    memory_ = static_cast<char*>(call.scratch->data);
  } else {
    block_ = pool.take(room * size_of(out_.type), site_);
    memory_ = block_.data();
  }
  sums_.resize(at_once * (call.tree ? call.tree->depth : 1));
  receives_.resize(pieces_ * received_rows_, MPI_REQUEST_NULL);
  for (Size p = 0; p < slots_; ++p) receive(p);
  send_shares(call, limit);
}

PairwiseReduction::~PairwiseReduction() {
  if (added_ < pieces_) block_.abandon();
}

char* PairwiseReduction::place_of(const SumTree::Term& term, Size number) const {
  const Size begin = piece(number).begin;
  if (term.rank == ranks_.rank) return static_cast<char*>(own_.at(term.row * own_.stride + begin));
  const Size element = slots_ < pieces_
                           ? (number % slots_ * received_rows_ + term.row) * piece(0).count
                           : term.row * out_.count + begin;
  return memory_ + element * size_of(out_.type);
}

void PairwiseReduction::send_shares(const Call& call, Size limit) {
  for (int step = 1; step < ranks_.size; ++step) {
    const int to = (ranks_.rank + step) % ranks_.size;
    const Range share = share_of(call, ranks_.size, to);
    const Size pieces = pieces_of(share.count, limit), rows = call.in.rows;
    for (Size i = 0; i < pieces * rows; ++i) {
      const Range piece = balanced_split(share.count, pieces, i / rows);
      check_mpi(MPI_Isend(call.in.at(i % rows * call.in.stride + share.begin + piece.begin),
                          static_cast<int>(piece.count), type_, to, tag, ranks_.comm,
                          &sends_.emplace_back(MPI_REQUEST_NULL)),
                "MPI_Isend", site_);
    }
  }
}

void PairwiseReduction::receive(Size number) {
  for (const SumTree::Term& term : terms_)
    if (term.rank != ranks_.rank)
      check_mpi(
          MPI_Irecv(place_of(term, number), static_cast<int>(piece(number).count), type_, term.rank,
                    tag, ranks_.comm, &receives_[number * received_rows_ + term.row]),
          "MPI_Irecv", site_);
}

/// Writes a result only after it has read all its terms, because the call may be in place.
void PairwiseReduction::add(Size number) {
  const Range all = piece(number);
  const Size bytes = size_of(out_.type);
  for (Size begin = 0; begin < all.count; begin += at_once) {
    const Size n = std::min(at_once, all.count - begin);
    const auto row = [&](Size of_sums) { return sums_.data() + of_sums * at_once; };
    Size rows = 0;
    for (const SumTree::Term& term : terms_) {
      const void* upper = place_of(term, number) + begin * bytes;
      if (term.joins == 0) std::memcpy(row(rows++), upper, static_cast<std::size_t>(n * bytes));
      for (Size join = 0; join < term.joins; ++join) {
        if (join > 0) upper = row(--rows);
        check_mpi(MPI_Reduce_local(upper, row(rows - 1), static_cast<int>(n), type_, op_),
                  "MPI_Reduce_local", site_);
      }
    }
    for (Size r = 0; r < rows; ++r)
      std::memcpy(out_.at(r * out_.stride + all.begin + begin), row(r),
                  static_cast<std::size_t>(n * bytes));
  }
}

bool PairwiseReduction::advance(bool to_the_end) {
  for (; added_ < pieces_; ++added_) {
    for (; arrived_ < (added_ + 1) * received_rows_; ++arrived_)
      if (!is_done(receives_[arrived_], to_the_end, site_)) return false;
    add(added_);
    if (added_ + slots_ < pieces_) receive(added_ + slots_);
  }
  pool_.give_back(std::move(block_));
  for (; sent_ < static_cast<Size>(sends_.size()); ++sent_)
    if (!is_done(sends_[sent_], to_the_end, site_)) return false;
  return true;
}

}  // namespace tessera::detail
