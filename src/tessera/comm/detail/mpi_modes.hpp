// SPDX-License-Identifier: Apache-2.0
// Calls the blocking or the non-blocking form of an MPI function, so that the transport states its
// calls once.
#pragma once

#include <cstddef>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/comm/detail/mpi_handle.hpp>
#include <tessera/comm/detail/transport.hpp>

namespace tessera::detail {

/// Throws if a message was shorter than its View. MPI itself reports a longer one.
inline void check_received(const MPI_Status& status, int expected, MPI_Datatype type,
                           const Site& site) {
  int received = 0;
  check_mpi(MPI_Get_count(&status, type, &received), "MPI_Get_count", site);
  if (received == expected) return;
  throw Error(ExitCode::communication,
              "receive at {}: the message from rank {} has {} elements, not the expected {}",
              to_string(site), status.MPI_SOURCE, received, expected);
}

/// Counts per rank as MPI takes them. They must live as long as the call.
struct IntCounts {
  std::vector<int> counts, displacements;
  void fill(const Call& call, int size) {
    counts.resize(size);
    displacements.resize(size);
    for (int i = 0; i < size; ++i) {
      const Range share = share_of(call, size, i);
      counts[i] = static_cast<int>(share.count);
      displacements[i] = static_cast<int>(share.begin);
    }
  }
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

  bool advance(bool to_the_end) override {
    for (; finished_ < parts_.size(); ++finished_) {
      Part& part = parts_[finished_];
      MPI_Status status;
      if (!is_done(part.request, to_the_end, site_, &status)) return false;
      if (part.expected >= 0) check_received(status, part.expected, part.type, site_);
    }
    copy(from_, to_);
    return true;
  }

 private:
  Site site_;
  std::vector<Part> parts_;
  std::size_t finished_ = 0;
  IntCounts ints_;
  Buffer from_, to_;
};

/// Calls blocking functions, which are several times faster than non-blocking ones with a wait.
/// With `pending`, calls non-blocking functions and adds their requests to it.
struct Mode {
  MpiPending* pending;  ///< null: blocking
  IntCounts& ints;
  const Site& site;

  template <class Blocking, class Started, class... Arguments>
  void call(const char* blocking_name, const Blocking& blocking, const char* started_name,
            const Started& started, Arguments... arguments) const {
    if (pending == nullptr) {
      check_mpi(blocking(arguments...), blocking_name, site);
    } else {
      check_mpi(started(arguments..., pending->next()), started_name, site);
    }
  }
  void receive(void* v, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm) const {
    if (pending != nullptr) {
      check_mpi(MPI_Irecv(v, n, type, peer, tag, comm, pending->next(n, type)), "MPI_Irecv", site);
      return;
    }
    MPI_Status status;
    check_mpi(MPI_Recv(v, n, type, peer, tag, comm, &status), "MPI_Recv", site);
    check_received(status, n, type, site);
  }
  /// Copies after the calls so far.
  void copy_then(const Buffer& from, const Buffer& to) const {
    pending != nullptr ? pending->copy_at_end(from, to) : copy(from, to);
  }
};

/// Calls one of two MPI functions, by the mode.
#define TESSERA_MPI(mode, blocking, started, ...) \
  (mode).call(#blocking, blocking, #started, started, __VA_ARGS__)

}  // namespace tessera::detail
