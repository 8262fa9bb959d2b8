// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <tessera/base/view.hpp>
#include <tessera/comm/communicator.hpp>

namespace tessera::bench {

/// All-reduces of n floats, through a Communicator and through MPI itself, on the same memory where
/// the Views are the host's.
class ReduceCase {
 public:
  /// `calls` in a row; collective over all ranks of the job.
  ReduceCase(const Communicator& world, Size n, Size calls);
  ~ReduceCase();
  ReduceCase(const ReduceCase&) = delete;
  ReduceCase& operator=(const ReduceCase&) = delete;

  void through_communicator() const;
  void through_mpi() const;
  Size calls() const { return calls_; }

 private:
  Communicator world_;
  Vector<float> values_;
  Vector<float>::HostMirror host_values_;
  Size calls_;
  MPI_Comm raw_ = MPI_COMM_NULL;
};

}  // namespace tessera::bench
