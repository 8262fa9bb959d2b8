// SPDX-License-Identifier: Apache-2.0
#include "run/calibrations.hpp"

#include <gtest/gtest.h>

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

Json rank_on(Size node, const char* cpu = "cpu") {
  return {{"host", "node" + std::to_string(node)}, {"cpu_model", cpu}, {"gpu", nullptr}};
}

Json row(Size first_node, Size nodes, Size ranks_each, const char* cpu = "cpu") {
  return {{"first_node", first_node},
          {"nodes", nodes},
          {"ranks_each", ranks_each},
          {"cpu_model", cpu},
          {"gpu", nullptr}};
}

TEST(NodesInOrder, OfManyRanksInBlocksAreOneRow) {
  std::vector<Json> ranks;
  for (Size r = 0; r < 100'000; ++r) ranks.push_back(rank_on(r / 8));
  EXPECT_EQ(nodes_in_order(ranks, 100'000), Json::array({row(0, 12'500, 8)}));
  EXPECT_EQ(nodes_in_order(ranks, 4), Json::array({row(0, 1, 4)}));
  EXPECT_EQ(nodes_in_order(ranks, 20), Json::array({row(0, 2, 8), row(2, 1, 4)}));
}

TEST(NodesInOrder, TellCyclesFromBlocks) {
  const std::vector<Json> ranks{rank_on(7), rank_on(3), rank_on(7), rank_on(3)};
  EXPECT_EQ(nodes_in_order(ranks, 4), Json::array({row(0, 2, 1), row(0, 2, 1)}));
}

TEST(NodesInOrder, TellKindsApart) {
  const std::vector<Json> ranks{rank_on(0), rank_on(1, "other"), rank_on(2), rank_on(2)};
  EXPECT_EQ(nodes_in_order(ranks, 4),
            Json::array({row(0, 1, 1), row(1, 1, 1, "other"), row(2, 1, 2)}));
}

}  // namespace
}  // namespace tessera::bench
