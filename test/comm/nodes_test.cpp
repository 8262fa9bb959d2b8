// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <mpi.h>

#include <tessera/comm/nodes.hpp>
#include <tessera/process/share_text.hpp>

#include "comm/comm_test_support.hpp"

namespace tessera {
namespace {

/// Returns the lowest rank on the host of each rank.
std::vector<Size> lowest_on_host() {
  char name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  MPI_Get_processor_name(name, &length);
  std::map<std::string, Size> lowest;
  std::vector<Size> nodes;
  for (const std::string& host : gather_texts(MPI_COMM_WORLD, name))
    nodes.push_back(lowest.try_emplace(host, static_cast<Size>(nodes.size())).first->second);
  return nodes;
}

TEST(NodeOfRanks, IsTheHost) {
  const Communicator world = Communicator::world();
  EXPECT_EQ(node_of_ranks(world), lowest_on_host());
  EXPECT_EQ(node_of_ranks(world.alone("self")), std::vector<Size>{0});
  EXPECT_TRUE(world.ledger().rows().empty());
}

}  // namespace
}  // namespace tessera
