// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <tessera/comm/detail/host_blocks.hpp>
#include <tessera/comm/detail/transport.hpp>

namespace tessera {
namespace {

/// One call whose buffers may be replaced by blocks of the pool.
class StagedCall final : public PendingCall {
 public:
  /// `everything`: replace buffers in host memory, too.
  StagedCall(const Call& call, int rank, bool everything, HostBlockPool& pool)
      : original_(call), staged_(call), pool_(pool) {
    const bool one_view = call.in.data == call.out.data && call.in.count == call.out.count;
    const bool out_in_in = one_view || call.in_place;
    if (must_stage(call.in, everything)) {
      in_ = stage(staged_.in);
      if (reads_in(call, rank)) copy(call.in, staged_.in);
      if (out_in_in) staged_.out = staged_.in.slice(offset_in(call), call.out.count);
    }
    if (!out_in_in && must_stage(call.out, everything)) out_ = stage(staged_.out);
    copy_back_ = writes_out(call, rank) && staged_.out.data != call.out.data;
  }
  StagedCall(const StagedCall&) = delete;
  StagedCall& operator=(const StagedCall&) = delete;
  ~StagedCall() override {
    pending_.reset();
    pool_.give_back(std::move(in_));
    pool_.give_back(std::move(out_));
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
  void finish() const {
    if (copy_back_) copy(staged_.out, original_.out);
  }
  static bool must_stage(const Buffer& buffer, bool everything) {
    return buffer.count > 0 && (everything || !buffer.host_accessible);
  }
  static bool reads_in(const Call& call, int rank) {
    if (call.operation == Operation::broadcast) return call.peer == rank;
    return call.operation != Operation::receive;
  }
  static bool writes_out(const Call& call, int rank) {
    if (call.operation == Operation::broadcast) return call.peer != rank;
    return call.operation != Operation::send;
  }
  /// Elements of `in` before `out`, which lies in it.
  static Size offset_in(const Call& call) {
    return (static_cast<char*>(call.out.data) - static_cast<char*>(call.in.data)) /
           size_of(call.in.type);
  }
  HostBlock stage(Buffer& buffer) {
    HostBlock block = pool_.take(buffer.bytes(), original_.site);
    buffer.data = block.data();
    buffer.host_accessible = true;
    buffer.needs_fence = false;
    return block;
  }

  Call original_;
  Call staged_;
  HostBlockPool& pool_;
  HostBlock in_, out_;
  bool copy_back_ = false;
  std::unique_ptr<PendingCall> pending_;  ///< of a call that was only started
};

class HostStaging final : public Transport {
 public:
  HostStaging(std::unique_ptr<Transport> next, int rank, Unfit unfit)
      : next_(std::move(next)), rank_(rank), unfit_(unfit) {}

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
    const bool reduces = is_reduction(call.operation) && unfit_ == Unfit::reductions;
    return (unfit_ == Unfit::out_of_reach || reduces || call.in_tree) &&
           (!call.in.host_accessible || !call.out.host_accessible);
  }

  std::unique_ptr<Transport> next_;
  int rank_;
  Unfit unfit_;
  HostBlockPool pool_;
};

}  // namespace

std::unique_ptr<Transport> make_host_staging(std::unique_ptr<Transport> next, int rank,
                                             Unfit unfit) {
  return std::make_unique<HostStaging>(std::move(next), rank, unfit);
}

}  // namespace tessera
