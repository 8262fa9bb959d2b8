// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <mpi.h>

#include <tessera/comm/call.hpp>
#include <tessera/comm/comm_options.hpp>

namespace tessera {

/// A call in flight. Its buffers belong to the caller and outlive it.
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  /// Goes on, to the end if `to_the_end`. True when the call has finished; asked no more after
  /// that.
  virtual bool advance(bool to_the_end) = 0;
};

/// Moves bytes for one communicator of more than one rank. Calls have been checked before.
/// Operations split and agree do not come here.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual void run(const Call& call) = 0;
  virtual std::unique_ptr<PendingCall> start(const Call& call) = 0;
};

/// Collective over `comm`, which it duplicates. Buffers must be such that MPI can read them.
std::unique_ptr<Transport> make_mpi_transport(MPI_Comm comm, const CommOptions& options,
                                              const Site& site);

/// Passes calls on to `next` with buffers in host memory: all of them if `everything`, else those
/// that the host cannot access. The copies are kept and used again.
std::unique_ptr<Transport> make_host_staging(std::unique_ptr<Transport> next, int rank,
                                             bool everything);

/// Collective over `comm`. Collectives of device buffers go through NCCL, the rest to `host`.
std::unique_ptr<Transport> make_nccl_transport(std::unique_ptr<Transport> host, MPI_Comm comm,
                                               const CommOptions& options, const Site& site);

/// Whether it is for NCCL to move: a matter of the View's type, and so the same on all ranks.
bool is_device_memory(const Buffer& buffer);

/// Does the MPI library say that it reads and writes the memory of Kokkos' device?
bool mpi_is_device_aware();

}  // namespace tessera
