// SPDX-License-Identifier: Apache-2.0
#include "cli/reduce_case.hpp"

#include <tessera/base/alias.hpp>

namespace tessera::bench {

ReduceCase::ReduceCase(const Communicator& world, Size n, Size calls)
    : world_(world),
      values_(allocate_zeros<float>("tessera::bench::values", n)),
      host_values_(Kokkos::create_mirror_view(values_)),
      calls_(calls) {
  MPI_Comm_dup(MPI_COMM_WORLD, &raw_);
}

ReduceCase::~ReduceCase() { MPI_Comm_free(&raw_); }

void ReduceCase::through_communicator() const {
  for (Size i = 0; i < calls_; ++i) world_.all_reduce(values_);
}

void ReduceCase::through_mpi() const {
  for (Size i = 0; i < calls_; ++i)
    MPI_Allreduce(MPI_IN_PLACE, host_values_.data(), static_cast<int>(host_values_.extent(0)),
                  MPI_FLOAT, MPI_SUM, raw_);
}

}  // namespace tessera::bench
