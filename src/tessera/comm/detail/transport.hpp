// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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
  /// For a call that will not be completed, before its buffers may go.
  virtual void abandon() noexcept {}
};

/// Moves bytes for one communicator of more than one rank, once the kernels that have been launched
/// before have run. Calls have been checked before. Operations split and agree do not come here.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Collective: makes the connections that the first call would make otherwise.
  virtual void connect(const Site&) {}
  virtual void run(const Call& call) = 0;
  virtual std::unique_ptr<PendingCall> start(const Call& call) = 0;
};

/// Collective over `comm`, which it duplicates. Buffers must be such that MPI can read them.
std::unique_ptr<Transport> make_mpi_transport(MPI_Comm comm, const CommOptions& options,
                                              const Site& site);

/// What MPI cannot do with buffers.
enum class Unfit : std::uint8_t {
  none,
  reductions,    ///< of memory that the host cannot access
  out_of_reach,  ///< any call with memory that the host cannot access
  everything,    ///< any call
};
/// Of the MPI library and Kokkos' device, as far as it says so.
Unfit unfit_for_mpi();

/// Passes calls on to `next`, those that are `unfit` with buffers in host memory. The copies are
/// kept and used again.
std::unique_ptr<Transport> make_host_staging(std::unique_ptr<Transport> next, int rank,
                                             Unfit unfit);

/// Collective over `ranks`, which outlives it. Collectives of device buffers go through NCCL, the
/// rest to `host`.
std::unique_ptr<Transport> make_nccl_transport(std::unique_ptr<Transport> host, MPI_Comm ranks,
                                               const CommOptions& options, const Site& site);

/// Whether it is for NCCL to move: a matter of the View's type, and so the same on all ranks.
bool is_device_memory(const Buffer& buffer);

/// The CUDA stream that kernels are launched on; null without CUDA.
void* kernel_stream();

}  // namespace tessera
