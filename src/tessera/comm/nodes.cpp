// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include <tessera/comm/detail/control_call.hpp>
#include <tessera/comm/nodes.hpp>

namespace tessera {

std::vector<Size> ranks_by_node(const Communicator& ranks, Site site) {
  if (ranks.size() == 1) return {1};
  const detail::ControlCall call(ranks, site);
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(
      MPI_Comm_split_type(call.ranks(), MPI_COMM_TYPE_SHARED, ranks.rank(), MPI_INFO_NULL, &node),
      "MPI_Comm_split_type", site);
  int rank = 0, size = 0;
  check_mpi(MPI_Comm_rank(node, &rank), "MPI_Comm_rank", site);
  check_mpi(MPI_Comm_size(node, &size), "MPI_Comm_size", site);
  check_mpi(MPI_Comm_free(&node), "MPI_Comm_free", site);
  // The lowest rank of each node counts it.
  const std::int64_t mine = rank == 0 ? size : 0;
  std::vector<Size> sizes(static_cast<std::size_t>(ranks.size()));
  check_mpi(MPI_Allgather(&mine, 1, MPI_INT64_T, sizes.data(), 1, MPI_INT64_T, call.ranks()),
            "MPI_Allgather", site);
  std::erase(sizes, 0);
  return sizes;
}

}  // namespace tessera
