// SPDX-License-Identifier: Apache-2.0
#include <tessera/comm/detail/mpi_handle.hpp>

namespace tessera {

bool is_done(MPI_Request& request, bool wait, const Site& site, MPI_Status* status) {
  int done = 1;
  if (wait) {
    check_mpi(MPI_Wait(&request, status), "MPI_Wait", site);
  } else {
    check_mpi(MPI_Test(&request, &done, status), "MPI_Test", site);
  }
  return done != 0;
}

MpiHandle::MpiHandle(MPI_Comm comm, const Site& site) : MpiHandle(comm) {
  check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", site);
}

MpiHandle MpiHandle::duplicate(MPI_Comm parent, const Site& site) {
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(parent, &comm), "MPI_Comm_dup", site);
  return MpiHandle(comm, site);
}

MpiHandle MpiHandle::split(MPI_Comm parent, int color, int key, const Site& site) {
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(parent, color, key, &comm), "MPI_Comm_split", site);
  return MpiHandle(comm, site);
}

MpiHandle::~MpiHandle() {
  if (comm_ != MPI_COMM_NULL && mpi_is_running()) MPI_Comm_free(&comm_);
}

}  // namespace tessera
