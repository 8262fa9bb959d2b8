// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <mpi.h>

#include <tessera/base/error.hpp>
#include <tessera/comm/site.hpp>

namespace tessera {

[[noreturn]] void raise_mpi_error(int code, const char* function, const Site& site);

/// Every return code of MPI passes here. Throws Error (communication) with MPI's own text, the
/// function and the call site.
inline void check_mpi(int code, const char* function, const Site& site) {
  if (code != MPI_SUCCESS) [[unlikely]] {
    raise_mpi_error(code, function, site);
  }
}

/// "tessera: <line>" on stderr, in one write so that lines of several processes do not mix.
void print_line(const std::string& line);

}  // namespace tessera
