// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <utility>

#include <tessera/base/half_float.hpp>
#include <tessera/comm/detail/mpi_modes.hpp>
#include <tessera/comm/detail/pairwise_reduction.hpp>
#include <tessera/comm/detail/transport.hpp>
#include <tessera/comm/scratch.hpp>

namespace tessera {
namespace {

using detail::IntCounts;
using detail::Mode;
using detail::MpiPending;
using detail::PairwiseReduction;

/// In the order of the enumerators. Not constexpr, because some libraries define types at run time.
MPI_Datatype mpi_type(DType type) {
  const std::array types{MPI_FLOAT,   MPI_DOUBLE,   MPI_INT32_T,
                         MPI_INT64_T, MPI_UINT16_T, MPI_UINT16_T};
  return types[static_cast<std::size_t>(type)];
}

/// Adds 16-bit floats and rounds each sum, as NCCL and PyTorch do. MPI has no type for them.
template <class T>
void add_halves(void* from, void* to, int* count, MPI_Datatype*) {
  const T* const in = static_cast<const T*>(from);
  T* const sum = static_cast<T*>(to);
  for (int i = 0; i < *count; ++i) sum[i] = sum[i] + in[i];
}

template <class T>
MPI_Op sum_of_halves() {
  static const MPI_Op made = [] {
    MPI_Op op = MPI_OP_NULL;
    check_mpi(MPI_Op_create(add_halves<T>, 1, &op), "MPI_Op_create", Site::current());
    return op;
  }();
  return made;
}

MPI_Op mpi_op(ReduceOp op, DType type) {
  if (type == DType::bfloat16) return sum_of_halves<BFloat16>();
  if (type == DType::float16) return sum_of_halves<Float16>();
  const std::array ops{MPI_SUM, MPI_MAX, MPI_MIN};
  return ops[static_cast<std::size_t>(op)];
}

/// An all-reduce whose terms are added in a tree: a reduce-scatter in place, then every rank sends
/// its share to all others.
class TreeAllReduce final : public PendingCall {
 public:
  using Gather = std::function<std::unique_ptr<PendingCall>()>;

  /// `gather` starts the exchange of shares.
  TreeAllReduce(std::unique_ptr<PendingCall> reduction, Gather gather)
      : part_(std::move(reduction)), gather_(std::move(gather)) {}

  bool advance(bool to_the_end) override {
    if (!part_->advance(to_the_end)) return false;
    if (!gather_) return true;
    part_ = std::exchange(gather_, nullptr)();
    return part_->advance(to_the_end);
  }

 private:
  std::unique_ptr<PendingCall> part_;
  Gather gather_;
};

class MpiTransport final : public Transport {
 public:
  MpiTransport(MPI_Comm comm, const CommOptions& options, const Site& site)
      : collectives_(MpiHandle::duplicate(comm, site)),
        messages_(MpiHandle::duplicate(comm, site)),
        max_count_(options.max_count) {
    check_mpi(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank", site);
    check_mpi(MPI_Comm_size(comm, &size_), "MPI_Comm_size", site);
  }

  void run(const Call& call) override {
    fence(call);
    if (call.operation == Operation::all_to_all || call.tree) {
      start(call)->advance(true);
    } else if (goes_in_pairs(call, cheap_in_pairs)) {
      constexpr Size slots = 2;  // one is received while the other is added
      reduction(call, slots)->advance(true);
    } else {
      issue(call, Mode{nullptr, ints_, call.site});
    }
  }

  std::unique_ptr<PendingCall> start(const Call& call) override {
    fence(call);
    if (call.tree && call.operation == Operation::all_reduce) return tree_all_reduce(call);
    if (call.tree || goes_in_pairs(call, started_in_pairs_from)) return reduction(call, 0);
    auto pending = std::make_unique<MpiPending>(call.site);
    issue(call, Mode{pending.get(), pending->ints(), call.site});
    return pending;
  }

 private:
  /// Waits for kernels of the execution space, not for NCCL calls of other communicators.
  static void fence(const Call& call) {
    if (call.in.needs_fence || call.out.needs_fence) ExecSpace().fence("tessera::comm: before MPI");
  }

  /// Shares of at least this many bytes are reduced faster with pairwise messages than by MPI,
  /// which sends fewer messages with many ranks. For non-blocking calls the limit is much lower
  /// (started_in_pairs_from), because MPI makes progress only inside its functions.
  static constexpr Size cheap_in_pairs = 16 << 10;

  /// The host must be able to access the memory.
  bool goes_in_pairs(const Call& call, Size share_bytes) const {
    return call.operation == Operation::reduce_scatter && call.in.host_accessible &&
           call.out.host_accessible &&
           (call.in.bytes() >= share_bytes * size_ || call.in.count > max_count_);
  }
  std::unique_ptr<PendingCall> reduction(const Call& call, Size slots) {
    constexpr Size piece_bytes = Size{1} << 20;
    return std::make_unique<PairwiseReduction>(
        call, mpi_type(call.in.type), mpi_op(call.op, call.in.type),
        PairwiseReduction::Ranks{collectives_.get(), rank_, size_},
        std::min(max_count_, piece_bytes / size_of(call.in.type)), slots, scratch_);
  }

  /// The second part begins when the first has ended on this rank, in no common order of started
  /// calls. So its messages have a tag of their own, the same on all ranks.
  std::unique_ptr<PendingCall> tree_all_reduce(const Call& whole) {
    Call call = whole;
    const Range own = balanced_split(call.in.count, size_, rank_);
    call.operation = Operation::reduce_scatter;
    call.out = call.out.slice(own.begin, own.count);
    call.in_place = call.balanced = true;
    constexpr int most_tags = 1 << 14;
    const int tag = 1 + next_tag_;
    next_tag_ = (next_tag_ + 1) % most_tags;
    return std::make_unique<TreeAllReduce>(reduction(call, 0), [this, call, tag] {
      auto pending = std::make_unique<MpiPending>(call.site);
      const Mode mode{pending.get(), pending->ints(), call.site};
      for (int step = 1; step < size_; ++step) {
        const int from = (rank_ + step) % size_;
        const Range share = share_of(call, size_, from);
        if (share.count > 0)
          receive(call.in.slice(share.begin, share.count), from, tag, collectives_.get(), mode);
      }
      for (int step = 1; call.out.count > 0 && step < size_; ++step)
        send(call.out, (rank_ + step) % size_, tag, collectives_.get(), mode);
      return pending;
    });
  }

  /// Calls f(address, count) for each piece of at most `limit` elements. An empty buffer is one
  /// piece, because an empty message is sent.
  template <class F>
  static void for_pieces(const Buffer& buffer, Size limit, const F& f) {
    Size begin = 0;
    do {
      const Size count = std::min(limit, buffer.count - begin);
      f(buffer.at(begin), static_cast<int>(count));
      begin += count;
    } while (begin < buffer.count);
  }

  /// Returns the elements of an all-reduce in one MPI call: a ring then sends messages of 4 MiB,
  /// whose time is far above the latency of any network. For longer messages MPI allocates and
  /// frees memory in every call, and the page faults cost more than the messages.
  Size reduced_at_once(DType type) const {
    constexpr Size message_bytes = Size{4} << 20;
    return std::min(max_count_, message_bytes / size_of(type) * size_);
  }

  void issue(const Call& call, const Mode& mode) const {
    switch (call.operation) {
      case Operation::all_reduce:
        return for_pieces(call.out, reduced_at_once(call.out.type), [&](void* v, int n) {
          TESSERA_MPI(mode, MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE, v, n,
                      mpi_type(call.in.type), mpi_op(call.op, call.in.type), collectives_.get());
        });
      case Operation::broadcast:
        return broadcast(call.out, call.peer, mode);
      case Operation::reduce_scatter:
        return reduce_scatter(call, mode);
      case Operation::all_gather:
        return all_gather(call, mode);
      case Operation::all_to_all:
        return exchange(call, mode);
      case Operation::send:
        return send(call.in, call.peer, call.tag, messages_.get(), mode);
      case Operation::receive:
        return receive(call.out, call.peer, call.tag, messages_.get(), mode);
      case Operation::barrier:
        return TESSERA_MPI(mode, MPI_Barrier, MPI_Ibarrier, collectives_.get());
      case Operation::split:
      case Operation::agree:
        return;
    }
  }

  void broadcast(const Buffer& buffer, int root, const Mode& mode) const {
    for_pieces(buffer, max_count_, [&](void* v, int n) {
      TESSERA_MPI(mode, MPI_Bcast, MPI_Ibcast, v, n, mpi_type(buffer.type), root,
                  collectives_.get());
    });
  }

  /// In place, MPI writes the share to the beginning of the buffer. A balanced share does not
  /// overlap it, unless it begins there.
  void reduce_scatter(const Call& call, const Mode& mode) const {
    const MPI_Datatype type = mpi_type(call.in.type);
    const MPI_Op op = mpi_op(call.op, call.in.type);
    const MPI_Comm comm = collectives_.get();
    const void* in = call.in_place ? MPI_IN_PLACE : call.in.data;
    void* out = call.in_place ? call.in.data : call.out.data;
    if (is_even(call, size_)) {
      TESSERA_MPI(mode, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, in, out,
                  static_cast<int>(call.out.count), type, op, comm);
    } else {
      mode.ints.fill(call, size_);
      TESSERA_MPI(mode, MPI_Reduce_scatter, MPI_Ireduce_scatter, in, out, mode.ints.counts.data(),
                  type, op, comm);
    }
    if (call.in_place) mode.copy_then(call.in.slice(0, call.out.count), call.out);
  }

  /// Copies the own share into place first: MPI_IN_PLACE must be used by all ranks or by none, and
  /// ranks do not know what others do. Beyond max_count there is one broadcast per share.
  void all_gather(const Call& call, const Mode& mode) const {
    const MPI_Datatype type = mpi_type(call.out.type);
    const MPI_Comm comm = collectives_.get();
    const Range own = share_of(call, size_, rank_);
    copy(call.in, call.out.slice(own.begin, own.count));
    if (call.out.count > max_count_) {
      for (int root = 0; root < size_; ++root) {
        const Range share = share_of(call, size_, root);
        broadcast(call.out.slice(share.begin, share.count), root, mode);
      }
    } else if (is_even(call, size_)) {
      TESSERA_MPI(mode, MPI_Allgather, MPI_Iallgather, MPI_IN_PLACE, 0, type, call.out.data,
                  static_cast<int>(own.count), type, comm);
    } else {
      mode.ints.fill(call, size_);
      TESSERA_MPI(mode, MPI_Allgatherv, MPI_Iallgatherv, MPI_IN_PLACE, 0, type, call.out.data,
                  mode.ints.counts.data(), mode.ints.displacements.data(), type, comm);
    }
  }

  /// Uses pairwise messages, which work for any count: no rank knows whether the counts of the
  /// others fit in an int. Receives are posted first.
  void exchange(const Call& call, const Mode& mode) const {
    const auto with_each = [&](const Buffer& buffer, std::span<const Size> counts, const auto& f) {
      Size begin = 0;
      for (int peer = 0; peer < size_; ++peer) {
        const Size count = counts[peer];
        if (count > 0) f(buffer.slice(begin, count), peer);
        begin += count;
      }
    };
    with_each(call.out, call.receive_counts, [&](const Buffer& part, int peer) {
      receive(part, peer, 0, collectives_.get(), mode);
    });
    with_each(call.in, call.counts,
              [&](const Buffer& part, int peer) { send(part, peer, 0, collectives_.get(), mode); });
  }

  void send(const Buffer& buffer, int peer, int tag, MPI_Comm comm, const Mode& mode) const {
    for_pieces(buffer, max_count_, [&](void* v, int n) {
      TESSERA_MPI(mode, MPI_Send, MPI_Isend, v, n, mpi_type(buffer.type), peer, tag, comm);
    });
  }

  void receive(const Buffer& buffer, int peer, int tag, MPI_Comm comm, const Mode& mode) const {
    for_pieces(buffer, max_count_,
               [&](void* v, int n) { mode.receive(v, n, mpi_type(buffer.type), peer, tag, comm); });
  }

  MpiHandle collectives_;
  MpiHandle messages_;
  Size max_count_;
  int rank_ = 0;
  int size_ = 1;
  int next_tag_ = 0;
  IntCounts ints_;  ///< of blocking calls
  HostBlockPool scratch_;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(MPI_Comm comm, const CommOptions& options,
                                              const Site& site) {
  return std::make_unique<MpiTransport>(comm, options, site);
}

}  // namespace tessera
