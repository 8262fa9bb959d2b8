// SPDX-License-Identifier: Apache-2.0
// A stand-in for the functions of NCCL and of the CUDA runtime that the NCCL transport calls. It
// uses MPI and host memory. Calls of a stream run one after the other, and progress when an event
// is queried.
#pragma once

#include <string>

namespace tessera::test {

/// The next fault. Each rank has its own.
struct NcclFaults {
  std::string failing{};  ///< the function that returns an error, once
  int async_error = 0;    ///< ncclResult_t that every communicator reports
  int late_queries = 0;   ///< queries of an event that are answered "not ready"
  int aborts = 0;         ///< counts ncclCommAbort
  int calls = 0;          ///< counts collectives, sends and receives
};
NcclFaults& nccl_faults();

/// A kernel that runs until finish_kernels().
void launch_kernel();
void finish_kernels();

}  // namespace tessera::test
