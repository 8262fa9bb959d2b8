// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <tessera/comm/detail/host_blocks.hpp>
#include <tessera/comm/detail/transport.hpp>

namespace tessera {
namespace {

bool reads_in(const Call& call, int rank) {
  if (call.operation == Operation::broadcast) return call.peer == rank;
  return call.operation != Operation::receive;
}
bool writes_out(const Call& call, int rank) {
  if (call.operation == Operation::broadcast) return call.peer != rank;
  return call.operation != Operation::send;
}

/// One call whose buffers may be copies in host memory.
class StagedCall final : public PendingCall {
 public:
  /// `everything`: copy buffers in host memory, too.
  StagedCall(const Call& call, int rank, bool everything, HostBlockPool& pool)
      : out_(call.out), staged_(call), pool_(pool) {
    const auto must_stage = [&](const Buffer& buffer) {
      return buffer.count > 0 && (everything || !buffer.host_accessible);
    };
    const bool one_view = call.in.data == call.out.data && call.in.count == call.out.count;
    const bool out_in_in = one_view || call.in_place;
    if (must_stage(call.in)) {
      move_to_host(staged_.in, in_block_,
                   out_in_in ? std::max(call.in.rows, call.out.rows) : call.in.rows);
      if (reads_in(call, rank)) copy(call.in, staged_.in);
      const auto before = static_cast<char*>(call.out.data) - static_cast<char*>(call.in.data);
      if (out_in_in) {
        staged_.out = staged_.in.slice(before / size_of(call.in.type), call.out.count);
        staged_.out.rows = call.out.rows;
      }
    }
    if (!out_in_in && must_stage(call.out)) move_to_host(staged_.out, out_block_, call.out.rows);
    copies_back_ = writes_out(call, rank) && staged_.out.data != call.out.data;
  }

  ~StagedCall() override {
    pending_.reset();  // it may use the blocks
    pool_.give_back(std::move(in_block_));
    pool_.give_back(std::move(out_block_));
  }

  void run(Transport& next) {
    next.run(staged_);
    finish();
  }
  void start(Transport& next) { pending_ = next.start(staged_); }
  bool advance(bool to_the_end) override {
    if (!pending_->advance(to_the_end)) return false;
    finish();
    return true;
  }

 private:
  void move_to_host(Buffer& buffer, HostBlock& block, Size rows) {
    block = pool_.take(rows * buffer.bytes(), staged_.site);
    buffer.stride = buffer.count;
    buffer.data = block.data();
    buffer.host_accessible = true;
    buffer.needs_fence = false;
  }
  void finish() const {
    if (copies_back_) copy(staged_.out, out_);
  }

  Buffer out_;
  Call staged_;
  HostBlockPool& pool_;
  HostBlock in_block_, out_block_;
  bool copies_back_ = false;
  std::unique_ptr<PendingCall> pending_;  ///< of a call that was only started
};

class HostStaging final : public Transport {
 public:
  HostStaging(std::unique_ptr<Transport> next, int rank, Unfit unfit, Size max_count)
      : next_(std::move(next)), rank_(rank), unfit_(unfit), max_count_(max_count) {}

  void run(const Call& call) override {
    if (!applies(call)) return next_->run(call);
    StagedCall(call, rank_, unfit_ == Unfit::everything, pool_).run(*next_);
  }
  std::unique_ptr<PendingCall> start(const Call& call) override {
    if (!applies(call)) return next_->start(call);
    auto staged = std::make_unique<StagedCall>(call, rank_, unfit_ == Unfit::everything, pool_);
    staged->start(*next_);
    return staged;
  }

 private:
  bool applies(const Call& call) const {
    if (unfit_ == Unfit::everything) return true;
    const bool reduces =
        is_reduction(call.operation) && (unfit_ == Unfit::reductions || is_half(call.in.type));
    const bool too_long = call.operation == Operation::reduce_scatter && call.in.count > max_count_;
    return (unfit_ == Unfit::out_of_reach || reduces || too_long || call.tree) &&
           (!call.in.host_accessible || !call.out.host_accessible);
  }

  std::unique_ptr<Transport> next_;
  int rank_;
  Unfit unfit_;
  Size max_count_;
  HostBlockPool pool_;
};

}  // namespace

std::unique_ptr<Transport> make_host_staging(std::unique_ptr<Transport> next, int rank, Unfit unfit,
                                             Size max_count) {
  return std::make_unique<HostStaging>(std::move(next), rank, unfit, max_count);
}

}  // namespace tessera
