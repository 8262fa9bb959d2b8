// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include <mpi.h>

#include <tessera/comm/call.hpp>
#include <tessera/comm/comm_options.hpp>

namespace tessera {

/// A call in flight. The caller owns its buffers, which outlive it.
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  /// Makes progress, or completes the call if `to_the_end`. Returns whether the call has finished,
  /// and is not called again after that.
  virtual bool advance(bool to_the_end) = 0;
  /// Gives up a call that will not be completed.
  virtual void abandon() noexcept {}
};

/// Moves the bytes of one communicator of several ranks, after the kernels launched before. Calls
/// have been checked. Operations split and agree do not come here.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Makes the connections that the first call would make otherwise. Collective.
  virtual void connect(const Site&) {}
  virtual void run(const Call& call) = 0;
  virtual std::unique_ptr<PendingCall> start(const Call& call) = 0;
};

/// Collective over `comm`, which it duplicates. MPI must be able to access the buffers.
std::unique_ptr<Transport> make_mpi_transport(MPI_Comm comm, const CommOptions& options,
                                              const Site& site);

/// A transport of a process that is `rank` of `size` ranks without the others. It writes what a
/// rank writes. Gathered and exchanged parts of other ranks repeat its own part, a reduction keeps
/// the own term, and messages deliver small numbers, all finite.
std::unique_ptr<Transport> make_fake_transport(int rank, int size);

/// The calls that MPI cannot do.
enum class Unfit : std::uint8_t {
  none,
  reductions,    ///< reductions of memory that the host cannot access
  out_of_reach,  ///< any call with memory that the host cannot access
  everything,    ///< any call
};
/// Returns what the MPI library cannot do with memory of Kokkos' device, as far as it reports it.
Unfit unfit_for_mpi();

/// Passes calls on to `next`, with buffers in host memory if they are `unfit`, or a reduce_scatter
/// of more than max_count elements. The host buffers are kept and reused.
std::unique_ptr<Transport> make_host_staging(std::unique_ptr<Transport> next, int rank, Unfit unfit,
                                             Size max_count);

/// Collective over `ranks`, which must outlive it. NCCL does the collectives on device buffers;
/// other calls go to `host`.
std::unique_ptr<Transport> make_nccl_transport(std::unique_ptr<Transport> host, MPI_Comm ranks,
                                               const CommOptions& options, const Site& site);

/// Returns whether NCCL moves this buffer. It depends on the type of the View, and so is the same
/// on all ranks.
bool is_device_memory(const Buffer& buffer);

/// Returns the CUDA stream of kernels; null without CUDA.
void* kernel_stream();

}  // namespace tessera
