// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <tessera/base/pair_tree.hpp>
#include <tessera/comm/detail/mpi_handle.hpp>
#include <tessera/comm/detail/pairwise_reduction.hpp>

namespace tessera::detail {
namespace {

constexpr int tag = 0;  // messages of one rank arrive in the order of the calls

Size pieces_of(Size count, Size limit) { return (count + limit - 1) / limit; }

}  // namespace

PairwiseReduction::PairwiseReduction(const Call& call, MPI_Datatype type, MPI_Op op,
                                     const Ranks& ranks, Size limit, Size slots,
                                     HostBlockPool& pool)
    : site_(call.site),
      type_(type),
      op_(op),
      ranks_(ranks),
      out_(call.out),
      in_tree_(call.in_tree),
      pool_(pool) {
  const Range share = share_of(call, ranks.size, ranks.rank);
  own_ = call.in.slice(share.begin, share.count);
  pieces_ = pieces_of(share.count, limit);
  messages_ = pieces_ * (ranks.size - 1);
  slots_ = slots == 0 ? messages_ : std::min(slots, messages_);
  largest_ = pieces_ == 0 ? 0 : balanced_split(share.count, pieces_, 0).count;
  const Size all = (ranks.size - 1) * share.count;
  if (slots == 0 && call.scratch && call.scratch->host_accessible && call.scratch->count >= all) {
    memory_ = static_cast<char*>(call.scratch->data);
  } else {
    const Size room = slots_ < messages_ ? slots_ * largest_ : all;
    block_ = pool.take(room * size_of(out_.type), site_);
    memory_ = block_.data();
  }
  receives_.resize(messages_, MPI_REQUEST_NULL);
  for (Size message = 0; message < slots_; ++message) receive(message);
  send_shares(call, limit);
}

PairwiseReduction::~PairwiseReduction() {
  if (added_ < messages_) block_.abandon();
}

/// Every rank receives first from the rank to which it is sent first: from the previous one or, in
/// a tree, from its neighbour in a pair.
int PairwiseReduction::receiver(int step) const {
  return in_tree_ ? ranks_.rank ^ step : (ranks_.rank + step) % ranks_.size;
}
int PairwiseReduction::sender(int step) const {
  return in_tree_ ? ranks_.rank ^ step : (ranks_.rank - step + ranks_.size) % ranks_.size;
}

void PairwiseReduction::send_shares(const Call& call, Size limit) {
  for (int step = 1; step < ranks_.size; ++step) {
    const int to = receiver(step);
    const Range share = share_of(call, ranks_.size, to);
    const Size pieces = pieces_of(share.count, limit);
    for (Size i = 0; i < pieces; ++i) {
      const Range piece = balanced_split(share.count, pieces, i);
      check_mpi(MPI_Isend(call.in.at(share.begin + piece.begin), static_cast<int>(piece.count),
                          type_, to, tag, ranks_.comm, &sends_.emplace_back(MPI_REQUEST_NULL)),
                "MPI_Isend", site_);
    }
  }
}

void PairwiseReduction::receive(Size message) {
  const int step = 1 + static_cast<int>(message / pieces_);
  check_mpi(MPI_Irecv(slot_of(message), static_cast<int>(piece_of(message).count), type_,
                      sender(step), tag, ranks_.comm, &receives_[message]),
            "MPI_Irecv", site_);
}

void PairwiseReduction::add(Size message) {
  const Range piece = piece_of(message);
  const Buffer out = out_.slice(piece.begin, piece.count);
  if (message < pieces_) copy(own_.slice(piece.begin, piece.count), out);
  const auto join = [&](void* from, void* to) {
    check_mpi(MPI_Reduce_local(from, to, static_cast<int>(piece.count), type_, op_),
              "MPI_Reduce_local", site_);
  };
  if (!in_tree_) return join(slot_of(message), out.data);
  // Step s brings the terms of rank r ^ s. Pairs of ranks are pairs of steps, so the tree over the
  // steps is the tree over the ranks.
  const auto node = [&](Size step) {
    return step == 0 ? out.data : slot_of((step - 1) * pieces_ + message % pieces_);
  };
  join_complete_nodes({1 + message / pieces_, 1},
                      [&](Size to, Size from) { join(node(from), node(to)); });
}

bool PairwiseReduction::advance(bool to_the_end) {
  for (; added_ < messages_; ++added_) {
    if (!is_done(receives_[added_], to_the_end, site_)) return false;
    add(added_);
    if (added_ + slots_ < messages_) receive(added_ + slots_);
  }
  pool_.give_back(std::move(block_));
  for (; sent_ < static_cast<Size>(sends_.size()); ++sent_) {
    if (!is_done(sends_[sent_], to_the_end, site_)) return false;
  }
  return true;
}

}  // namespace tessera::detail
