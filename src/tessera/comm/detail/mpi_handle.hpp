// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <mpi.h>

#include <tessera/process/mpi_error.hpp>

namespace tessera {

/// Returns whether the request has finished. Waits for it if `wait` is set.
bool is_done(MPI_Request& request, bool wait, const Site& site,
             MPI_Status* status = MPI_STATUS_IGNORE);

/// Owns an MPI communicator, and frees it if MPI still runs. MPI returns errors of calls on it.
class MpiHandle {
 public:
  MpiHandle() = default;
  /// Collective over `parent`.
  static MpiHandle duplicate(MPI_Comm parent, const Site& site);
  /// Collective over `parent`. Ranks of the same color are in the order of (key, rank).
  static MpiHandle split(MPI_Comm parent, int color, int key, const Site& site);

  MpiHandle(MpiHandle&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  MpiHandle& operator=(MpiHandle&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  ~MpiHandle();

  MPI_Comm get() const { return comm_; }
  /// Never frees the communicator. MPI would give its identifier to the next one, which then could
  /// receive messages that are still on their way.
  void keep() { comm_ = MPI_COMM_NULL; }

 private:
  explicit MpiHandle(MPI_Comm comm) : comm_(comm) {}
  MpiHandle(MPI_Comm comm, const Site& site);
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace tessera
