// SPDX-License-Identifier: Apache-2.0
#include <tessera/comm/share_json.hpp>

#include "comm/comm_test_support.hpp"

namespace tessera {
namespace {

nlohmann::json document_of(int rank) {
  return {{"rank", rank}, {"text", std::string(static_cast<std::size_t>(40 * rank), 'x')}};
}

TEST(ShareJson, DocumentsReachAllRanksAndAreNoTraffic) {
  for (const CommOptions& way : test::all_ways()) {
    const Communicator comm = Communicator::world(way);
    const auto all = gather_json(comm, document_of(comm.rank()));
    ASSERT_EQ(all.size(), static_cast<std::size_t>(comm.size()));
    for (int rank = 0; rank < comm.size(); ++rank)
      EXPECT_EQ(all[static_cast<std::size_t>(rank)], document_of(rank));
    const auto on_first = gather_json_on_first(comm, document_of(comm.rank()));
    EXPECT_EQ(on_first, comm.rank() == 0 ? all : std::vector<nlohmann::json>{});
    EXPECT_EQ(broadcast_json(comm, document_of(comm.rank() + 1)), document_of(1));
    EXPECT_TRUE(comm.ledger().rows().empty());
  }
}

TEST(ShareJson, WhatIsNoUtf8IsReplacedOnAllRanks) {
  const Communicator comm = Communicator::world();
  const nlohmann::json shared = broadcast_json(comm, comm.rank() == 0 ? "a\xff" : "b");
  EXPECT_EQ(shared, "a\xef\xbf\xbd");
}

}  // namespace
}  // namespace tessera
