// SPDX-License-Identifier: Apache-2.0
// choose_backend() rejects NCCL in this build, so this transport is never used.
#include <tessera/comm/detail/transport.hpp>

namespace tessera {

std::optional<std::string> nccl_version() { return std::nullopt; }

std::unique_ptr<Transport> make_nccl_transport(std::unique_ptr<Transport> host, MPI_Comm,
                                               const CommOptions&, const Site&) {
  return host;
}

}  // namespace tessera
