// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include <tessera/comm/detail/communicator_state.hpp>
#include <tessera/comm/nodes.hpp>

namespace tessera {

std::vector<Size> node_of_ranks(const Communicator& ranks, Site site) {
  if (ranks.size() == 1) return {0};
  const detail::ControlCall call(ranks, site);
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(
      MPI_Comm_split_type(call.ranks(), MPI_COMM_TYPE_SHARED, ranks.rank(), MPI_INFO_NULL, &node),
      "MPI_Comm_split_type", site);
  std::int64_t lowest = ranks.rank();
  check_mpi(MPI_Bcast(&lowest, 1, MPI_INT64_T, 0, node), "MPI_Bcast", site);
  check_mpi(MPI_Comm_free(&node), "MPI_Comm_free", site);
  std::vector<Size> nodes(ranks.size());
  check_mpi(MPI_Allgather(&lowest, 1, MPI_INT64_T, nodes.data(), 1, MPI_INT64_T, call.ranks()),
            "MPI_Allgather", site);
  return nodes;
}

}  // namespace tessera
