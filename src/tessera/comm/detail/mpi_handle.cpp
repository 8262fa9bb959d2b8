// SPDX-License-Identifier: Apache-2.0
#include <tessera/comm/detail/mpi_handle.hpp>

namespace tessera {
namespace {

void return_errors(MPI_Comm comm, const Site& site) {
  check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", site);
}

}  // namespace

MpiHandle MpiHandle::duplicate(MPI_Comm parent, const Site& site) {
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(parent, &comm), "MPI_Comm_dup", site);
  MpiHandle handle(comm);
  return_errors(comm, site);
  return handle;
}

MpiHandle MpiHandle::split(MPI_Comm parent, int color, int key, const Site& site) {
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(parent, color, key, &comm), "MPI_Comm_split", site);
  MpiHandle handle(comm);
  return_errors(comm, site);
  return handle;
}

MpiHandle::~MpiHandle() {
  if (comm_ == MPI_COMM_NULL) return;
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) MPI_Comm_free(&comm_);
}

}  // namespace tessera
