// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/comm/mpi_handle.hpp>
#include <tessera/comm/transport.hpp>

namespace tessera {
namespace {

MPI_Datatype mpi_type(DType type) {
  switch (type) {
    case DType::float32:
      return MPI_FLOAT;
    case DType::float64:
      return MPI_DOUBLE;
    case DType::int32:
      return MPI_INT32_T;
    case DType::int64:
      return MPI_INT64_T;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op mpi_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return MPI_SUM;
    case ReduceOp::max:
      return MPI_MAX;
    case ReduceOp::min:
      return MPI_MIN;
  }
  return MPI_OP_NULL;
}

/// A message shorter than its View; a longer one is an error of MPI's own.
void check_received(const MPI_Status& status, int expected, MPI_Datatype type, const Site& site) {
  int received = 0;
  check_mpi(MPI_Get_count(&status, type, &received), "MPI_Get_count", site);
  if (received == expected) return;
  throw Error(ExitCode::communication,
              fmt::format("receive at {}: the message of rank {} has {} elements, {} were expected",
                          to_string(site), status.MPI_SOURCE, received, expected));
}

/// Counts per rank in the form that MPI wants; kept as long as the call lasts.
struct IntCounts {
  std::vector<int> counts, displacements;
  void fill(const Call& call, int size) {
    counts.resize(static_cast<std::size_t>(size));
    displacements.resize(static_cast<std::size_t>(size));
    for (int i = 0; i < size; ++i) {
      const Range share = share_of(call, size, i);
      counts[static_cast<std::size_t>(i)] = static_cast<int>(share.count);
      displacements[static_cast<std::size_t>(i)] = static_cast<int>(share.begin);
    }
  }
};

/// The blocking functions of MPI. They are several times faster than the others with a wait.
struct Blocking {
  IntCounts& ints;
  const Site& site;

  void all_reduce(void* v, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) const {
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, v, n, type, op, comm), "MPI_Allreduce", site);
  }
  void reduce(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, int root,
              MPI_Comm comm) const {
    check_mpi(MPI_Reduce(in, out, n, type, op, root, comm), "MPI_Reduce", site);
  }
  void broadcast(void* v, int n, MPI_Datatype type, int root, MPI_Comm comm) const {
    check_mpi(MPI_Bcast(v, n, type, root, comm), "MPI_Bcast", site);
  }
  void reduce_scatter_even(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op,
                           MPI_Comm comm) const {
    check_mpi(MPI_Reduce_scatter_block(in, out, n, type, op, comm), "MPI_Reduce_scatter_block",
              site);
  }
  void reduce_scatter(const void* in, void* out, MPI_Datatype type, MPI_Op op,
                      MPI_Comm comm) const {
    check_mpi(MPI_Reduce_scatter(in, out, ints.counts.data(), type, op, comm), "MPI_Reduce_scatter",
              site);
  }
  void all_gather_even(void* out, int n, MPI_Datatype type, MPI_Comm comm) const {
    check_mpi(MPI_Allgather(MPI_IN_PLACE, 0, type, out, n, type, comm), "MPI_Allgather", site);
  }
  void all_gather(void* out, MPI_Datatype type, MPI_Comm comm) const {
    check_mpi(MPI_Allgatherv(MPI_IN_PLACE, 0, type, out, ints.counts.data(),
                             ints.displacements.data(), type, comm),
              "MPI_Allgatherv", site);
  }
  void send(const void* v, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm) const {
    check_mpi(MPI_Send(v, n, type, peer, tag, comm), "MPI_Send", site);
  }
  void receive(void* v, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm) const {
    MPI_Status status;
    check_mpi(MPI_Recv(v, n, type, peer, tag, comm, &status), "MPI_Recv", site);
    check_received(status, n, type, site);
  }
  void barrier(MPI_Comm comm) const { check_mpi(MPI_Barrier(comm), "MPI_Barrier", site); }
};

class MpiPending final : public PendingCall {
 public:
  struct Part {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    int expected = -1;  ///< elements of a receive
  };

  explicit MpiPending(const Site& site) : site_(site) {}

  MPI_Request* next(int expected = -1, MPI_Datatype type = MPI_DATATYPE_NULL) {
    parts_.push_back({MPI_REQUEST_NULL, type, expected});
    return &parts_.back().request;
  }
  IntCounts& ints() { return ints_; }

  void wait() override {
    for (; finished_ < parts_.size(); ++finished_) {
      MPI_Status status;
      check_mpi(MPI_Wait(&parts_[finished_].request, &status), "MPI_Wait", site_);
      check_part(status);
    }
  }
  bool test() override {
    for (; finished_ < parts_.size(); ++finished_) {
      int flag = 0;
      MPI_Status status;
      check_mpi(MPI_Test(&parts_[finished_].request, &flag, &status), "MPI_Test", site_);
      if (!flag) return false;
      check_part(status);
    }
    return true;
  }

 private:
  void check_part(const MPI_Status& status) const {
    const Part& part = parts_[finished_];
    if (part.expected >= 0) check_received(status, part.expected, part.type, site_);
  }

  Site site_;
  std::vector<Part> parts_;
  std::size_t finished_ = 0;
  IntCounts ints_;
};

/// The same functions, started only.
struct NonBlocking {
  MpiPending& pending;
  IntCounts& ints;
  const Site& site;

  void all_reduce(void* v, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) const {
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, v, n, type, op, comm, pending.next()), "MPI_Iallreduce",
              site);
  }
  void reduce(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, int root,
              MPI_Comm comm) const {
    check_mpi(MPI_Ireduce(in, out, n, type, op, root, comm, pending.next()), "MPI_Ireduce", site);
  }
  void broadcast(void* v, int n, MPI_Datatype type, int root, MPI_Comm comm) const {
    check_mpi(MPI_Ibcast(v, n, type, root, comm, pending.next()), "MPI_Ibcast", site);
  }
  void reduce_scatter_even(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op,
                           MPI_Comm comm) const {
    check_mpi(MPI_Ireduce_scatter_block(in, out, n, type, op, comm, pending.next()),
              "MPI_Ireduce_scatter_block", site);
  }
  void reduce_scatter(const void* in, void* out, MPI_Datatype type, MPI_Op op,
                      MPI_Comm comm) const {
    check_mpi(MPI_Ireduce_scatter(in, out, ints.counts.data(), type, op, comm, pending.next()),
              "MPI_Ireduce_scatter", site);
  }
  void all_gather_even(void* out, int n, MPI_Datatype type, MPI_Comm comm) const {
    check_mpi(MPI_Iallgather(MPI_IN_PLACE, 0, type, out, n, type, comm, pending.next()),
              "MPI_Iallgather", site);
  }
  void all_gather(void* out, MPI_Datatype type, MPI_Comm comm) const {
    check_mpi(MPI_Iallgatherv(MPI_IN_PLACE, 0, type, out, ints.counts.data(),
                              ints.displacements.data(), type, comm, pending.next()),
              "MPI_Iallgatherv", site);
  }
  void send(const void* v, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm) const {
    check_mpi(MPI_Isend(v, n, type, peer, tag, comm, pending.next()), "MPI_Isend", site);
  }
  void receive(void* v, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm) const {
    check_mpi(MPI_Irecv(v, n, type, peer, tag, comm, pending.next(n, type)), "MPI_Irecv", site);
  }
  void barrier(MPI_Comm comm) const {
    check_mpi(MPI_Ibarrier(comm, pending.next()), "MPI_Ibarrier", site);
  }
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
    if (call.operation == Operation::all_to_all) {
      start(call)->wait();
    } else {
      issue(call, Blocking{ints_, call.site});
    }
  }

  std::unique_ptr<PendingCall> start(const Call& call) override {
    auto pending = std::make_unique<MpiPending>(call.site);
    issue(call, NonBlocking{*pending, pending->ints(), call.site});
    return pending;
  }

 private:
  /// f(address, count) for each piece of at most `limit` elements; no piece of an empty buffer.
  template <class F>
  static void for_pieces(const Buffer& buffer, Size limit, const F& f) {
    for (Size begin = 0; begin < buffer.count; begin += limit) {
      f(buffer.at(begin), static_cast<int>(std::min(limit, buffer.count - begin)));
    }
  }
  /// The pieces that one MPI call may carry.
  template <class F>
  void for_pieces(const Buffer& buffer, const F& f) const {
    for_pieces(buffer, max_count_, f);
  }

  /// Elements of an all-reduce in one MPI call: a ring then sends messages of 4 MiB. That is well
  /// beyond the latency of any network. More only makes MPI receive into memory that it takes from
  /// the system and gives back at every call, whose page faults cost more than the messages.
  Size reduced_at_once(DType type) const {
    constexpr Size message_bytes = Size{4} << 20;
    return std::min(max_count_, message_bytes / size_of(type) * size_);
  }

  template <class Mode>
  void issue(const Call& call, const Mode& mode) const {
    const MPI_Datatype type = mpi_type(call.in.type);
    const MPI_Comm comm = collectives_.get();
    switch (call.operation) {
      case Operation::all_reduce:
        return for_pieces(call.out, reduced_at_once(call.out.type), [&](void* v, int n) {
          mode.all_reduce(v, n, type, mpi_op(call.op), comm);
        });
      case Operation::broadcast:
        return for_pieces(call.out,
                          [&](void* v, int n) { mode.broadcast(v, n, type, call.peer, comm); });
      case Operation::reduce_scatter:
        return reduce_scatter(call, mode);
      case Operation::all_gather:
        return all_gather(call, mode);
      case Operation::all_to_all:
        if constexpr (std::is_same_v<Mode, NonBlocking>) exchange(call, mode);
        return;
      case Operation::send:
        return send(call, mode);
      case Operation::receive:
        return receive(call, mode);
      case Operation::barrier:
        return mode.barrier(comm);
      case Operation::split:
      case Operation::agree:
        return;
    }
  }

  bool is_even(const Call& call) const { return call.balanced && call.full().count % size_ == 0; }

  /// Beyond max_count: one reduction per share.
  template <class Mode>
  void reduce_scatter(const Call& call, const Mode& mode) const {
    const MPI_Datatype type = mpi_type(call.in.type);
    const MPI_Op op = mpi_op(call.op);
    const MPI_Comm comm = collectives_.get();
    if (call.in.count > max_count_) {
      for (int root = 0; root < size_; ++root) {
        const Range share = share_of(call, size_, root);
        Size done = 0;
        for_pieces(call.in.slice(share.begin, share.count), [&](void* in, int n) {
          mode.reduce(in, root == rank_ ? call.out.at(done) : nullptr, n, type, op, root, comm);
          done += n;
        });
      }
    } else if (is_even(call)) {
      mode.reduce_scatter_even(call.in.data, call.out.data, static_cast<int>(call.out.count), type,
                               op, comm);
    } else {
      mode.ints.fill(call, size_);
      mode.reduce_scatter(call.in.data, call.out.data, type, op, comm);
    }
  }

  /// The own share is put in place first: MPI wants "in place" from all ranks or from none, and a
  /// rank cannot see what the others do. Beyond max_count: one broadcast per share.
  template <class Mode>
  void all_gather(const Call& call, const Mode& mode) const {
    const MPI_Datatype type = mpi_type(call.out.type);
    const MPI_Comm comm = collectives_.get();
    const Range own = share_of(call, size_, rank_);
    copy(call.in, call.out.slice(own.begin, own.count));
    if (call.out.count > max_count_) {
      for (int root = 0; root < size_; ++root) {
        const Range share = share_of(call, size_, root);
        for_pieces(call.out.slice(share.begin, share.count),
                   [&](void* v, int n) { mode.broadcast(v, n, type, root, comm); });
      }
    } else if (is_even(call)) {
      mode.all_gather_even(call.out.data, static_cast<int>(own.count), type, comm);
    } else {
      mode.ints.fill(call, size_);
      mode.all_gather(call.out.data, type, comm);
    }
  }

  /// Messages in pairs: no rank knows whether another one's counts fit in an int, so all of them
  /// must use a way that works for any count. Receives are posted first.
  void exchange(const Call& call, const NonBlocking& mode) const {
    const MPI_Datatype type = mpi_type(call.in.type);
    Size begin = 0;
    for (int i = 0; i < size_; ++i) {
      const Size count = call.receive_counts[static_cast<std::size_t>(i)];
      for_pieces(call.out.slice(begin, count),
                 [&](void* v, int n) { mode.receive(v, n, type, i, 0, collectives_.get()); });
      begin += count;
    }
    begin = 0;
    for (int i = 0; i < size_; ++i) {
      const Size count = call.counts[static_cast<std::size_t>(i)];
      for_pieces(call.in.slice(begin, count),
                 [&](void* v, int n) { mode.send(v, n, type, i, 0, collectives_.get()); });
      begin += count;
    }
  }

  /// An empty message is a message.
  template <class Mode>
  void send(const Call& call, const Mode& mode) const {
    const MPI_Datatype type = mpi_type(call.in.type);
    const MPI_Comm comm = messages_.get();
    if (call.in.count == 0) return mode.send(nullptr, 0, type, call.peer, call.tag, comm);
    for_pieces(call.in, [&](void* v, int n) { mode.send(v, n, type, call.peer, call.tag, comm); });
  }

  template <class Mode>
  void receive(const Call& call, const Mode& mode) const {
    const MPI_Datatype type = mpi_type(call.out.type);
    const MPI_Comm comm = messages_.get();
    if (call.out.count == 0) return mode.receive(nullptr, 0, type, call.peer, call.tag, comm);
    for_pieces(call.out,
               [&](void* v, int n) { mode.receive(v, n, type, call.peer, call.tag, comm); });
  }

  MpiHandle collectives_;
  MpiHandle messages_;
  Size max_count_;
  int rank_ = 0;
  int size_ = 1;
  IntCounts ints_;  ///< of blocking calls
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(MPI_Comm comm, const CommOptions& options,
                                              const Site& site) {
  return std::make_unique<MpiTransport>(comm, options, site);
}

}  // namespace tessera
