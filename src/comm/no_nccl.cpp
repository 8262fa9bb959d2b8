// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/error.hpp>
#include <tessera/comm/transport.hpp>

namespace tessera {

std::unique_ptr<Transport> make_nccl_transport(std::unique_ptr<Transport>, MPI_Comm,
                                               const CommOptions&, const Site&) {
  throw ConfigError("backend", "nccl", "this build has no NCCL; use mpi");
}

}  // namespace tessera
