// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include <tessera/process/mpi_error.hpp>

namespace tessera {

bool mpi_is_running() {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

void raise_mpi_error(int code, const char* function, const Site& site) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(ExitCode::communication, "{} at {} failed: {}", function, to_string(site),
              std::string_view(text, static_cast<std::size_t>(length)));
}

}  // namespace tessera
