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
    std::vector<nlohmann::json> all;
    for (int rank = 0; rank < comm.size(); ++rank) all.push_back(document_of(rank));
    const auto on_first = gather_json(comm, document_of(comm.rank()));
    EXPECT_EQ(on_first, comm.rank() == 0 ? all : std::vector<nlohmann::json>{});
    const auto last = conclude_json(comm, document_of(comm.rank()), [&](const auto& documents) {
      EXPECT_EQ(comm.rank(), 0);
      EXPECT_EQ(documents, all);
      return documents.back();
    });
    EXPECT_EQ(last, all.back());
    EXPECT_EQ(broadcast_json(comm, document_of(comm.rank() + 1)), document_of(1));
    EXPECT_TRUE(comm.ledger().rows().empty());
  }
}

TEST(ShareJson, KeepsBytesThatAreNotUtf8) {
  const Communicator comm = Communicator::world();
  const nlohmann::json shared = broadcast_json(comm, comm.rank() == 0 ? "a\xff" : "b");
  EXPECT_EQ(shared, "a\xff");
}

}  // namespace
}  // namespace tessera
