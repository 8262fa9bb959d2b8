// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <tessera/base/error.hpp>
#include <tessera/base/site.hpp>

namespace tessera {

/// Whether MPI has been initialized, and not finalized since.
bool mpi_is_running();

[[noreturn]] void raise_mpi_error(int code, const char* function, const Site& site);

/// Every return code of MPI passes here. Throws Error (communication) with MPI's own text, the
/// function and the call site.
inline void check_mpi(int code, const char* function, const Site& site) {
  if (code != MPI_SUCCESS) [[unlikely]] {
    raise_mpi_error(code, function, site);
  }
}

}  // namespace tessera
