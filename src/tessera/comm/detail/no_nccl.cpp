// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/error.hpp>
#include <tessera/comm/detail/transport.hpp>

namespace tessera {

std::optional<std::string> nccl_version() { return std::nullopt; }

void require_nccl() {
  throw ConfigError("distributed.backend", "nccl", "this build has no NCCL; must be mpi");
}

std::unique_ptr<Transport> make_nccl_transport(std::unique_ptr<Transport> host, MPI_Comm,
                                               const CommOptions&, const Site&) {
  require_nccl();
  return host;
}

}  // namespace tessera
