// SPDX-License-Identifier: Apache-2.0
// The functions of MPI that a transport uses, in two modes with the same names and arguments, so
// that what is called with which pieces is written once.
#pragma once

#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/comm/detail/mpi_handle.hpp>
#include <tessera/comm/detail/transport.hpp>

namespace tessera::detail {

/// A message shorter than its View; a longer one is an error of MPI's own.
inline void check_received(const MPI_Status& status, int expected, MPI_Datatype type,
                           const Site& site) {
  int received = 0;
  check_mpi(MPI_Get_count(&status, type, &received), "MPI_Get_count", site);
  if (received == expected) return;
  throw Error(
      ExitCode::communication,
      fmt::format("receive at {}: the message of rank {} has {} elements, not the expected {}",
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
  /// After what has been called so far.
  void copy_then(const Buffer& from, const Buffer& to) const { copy(from, to); }
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
  void copy_at_end(const Buffer& from, const Buffer& to) {
    from_ = from;
    to_ = to;
  }

  void wait() override {
    for (; finished_ < parts_.size(); ++finished_) {
      MPI_Status status;
      check_mpi(MPI_Wait(&parts_[finished_].request, &status), "MPI_Wait", site_);
      check_part(status);
    }
    copy(from_, to_);
  }
  bool test() override {
    for (; finished_ < parts_.size(); ++finished_) {
      int flag = 0;
      MPI_Status status;
      check_mpi(MPI_Test(&parts_[finished_].request, &flag, &status), "MPI_Test", site_);
      if (!flag) return false;
      check_part(status);
    }
    copy(from_, to_);
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
  Buffer from_, to_;
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
  void copy_then(const Buffer& from, const Buffer& to) const { pending.copy_at_end(from, to); }
  void barrier(MPI_Comm comm) const {
    check_mpi(MPI_Ibarrier(comm, pending.next()), "MPI_Ibarrier", site);
  }
};

}  // namespace tessera::detail
