// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <mpi.h>

#include <tessera/base/share_text.hpp>
#include <tessera/comm/nodes.hpp>

#include "comm/comm_test_support.hpp"

namespace tessera {
namespace {

/// Ranks of each host by its name, in the order of each host's lowest rank.
std::vector<Size> ranks_by_host() {
  char name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  MPI_Get_processor_name(name, &length);
  std::map<std::string, std::size_t> numbers;
  std::vector<Size> ranks;
  for (const std::string& host : gather_texts(MPI_COMM_WORLD, name)) {
    const auto [number, is_new] = numbers.try_emplace(host, ranks.size());
    if (is_new) ranks.push_back(0);
    ++ranks[number->second];
  }
  return ranks;
}

TEST(RanksByNode, AreThoseThatShareAHost) {
  const Communicator world = Communicator::world();
  EXPECT_EQ(ranks_by_node(world), ranks_by_host());
  EXPECT_EQ(ranks_by_node(world.alone("self")), std::vector<Size>{1});
  EXPECT_TRUE(world.ledger().rows().empty());
}

}  // namespace
}  // namespace tessera
