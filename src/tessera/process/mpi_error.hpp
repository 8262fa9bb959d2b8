// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <tessera/base/error.hpp>
#include <tessera/base/site.hpp>

namespace tessera {

/// Returns whether MPI has been initialized and not been finalized.
bool mpi_is_running();

[[noreturn]] void raise_mpi_error(int code, const char* function, const Site& site);

/// Checks a return code of MPI. Throws Error (communication) with MPI's text, the function and the
/// call site.
inline void check_mpi(int code, const char* function, const Site& site) {
  if (code != MPI_SUCCESS) [[unlikely]] {
    raise_mpi_error(code, function, site);
  }
}

}  // namespace tessera
