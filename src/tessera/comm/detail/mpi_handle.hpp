// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <mpi.h>

#include <tessera/process/mpi_error.hpp>

namespace tessera {

/// Whether the request has finished; waits until it has if asked to.
bool is_done(MPI_Request& request, bool wait, const Site& site,
             MPI_Status* status = MPI_STATUS_IGNORE);

/// Owns an MPI communicator. Errors on it are returned, not fatal. Freed once, and only while MPI
/// lives.
class MpiHandle {
 public:
  MpiHandle() = default;
  /// Collective over `parent`.
  static MpiHandle duplicate(MPI_Comm parent, const Site& site);
  /// Collective over `parent`; ranks of the same color in the order of (key, rank).
  static MpiHandle split(MPI_Comm parent, int color, int key, const Site& site);

  MpiHandle(MpiHandle&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  MpiHandle& operator=(MpiHandle&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  ~MpiHandle();

  MPI_Comm get() const { return comm_; }
  /// Never frees it: what may still arrive must not reach the next communicator, to which MPI
  /// would give the same identifier.
  void keep() { comm_ = MPI_COMM_NULL; }

 private:
  explicit MpiHandle(MPI_Comm comm) : comm_(comm) {}
  MpiHandle(MPI_Comm comm, const Site& site);
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace tessera
