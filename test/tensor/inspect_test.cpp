// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/tensor/inspect.hpp>

namespace tessera {
namespace {

TEST(InspectSharding, ListsBlocksAndTheirHolders) {
  const MeshShape mesh = MeshShape::parse("data=2,model=2", 4);
  EXPECT_EQ(inspect_sharding("layer1/kernel", {4, 7}, {Placement::replicate(), Placement::shard(1)},
                             mesh),
            "layer1/kernel:\n"
            "  Shape: (4, 7)\n"
            "  Sharding: P(None, 'model')\n"
            "  Ranks: 4\n"
            "  [0:4, 0:4] on ranks 0,2\n"
            "  [0:4, 4:7] on ranks 1,3\n");
  const std::string partial =
      inspect_sharding("g", {1}, {Placement::partial(), Placement::shard(0)}, mesh);
  EXPECT_NE(partial.find("Sharding: data: Partial, model: Shard(0)"), std::string::npos);
  EXPECT_NE(partial.find("[1:1] (empty) on ranks 1,3"), std::string::npos);
}

TEST(InspectSharding, IsShortForBigMeshes) {
  const MeshShape mesh = MeshShape::parse("data=100000", 100000);
  EXPECT_NE(inspect_sharding("x", {200000}, {Placement::shard(0)}, mesh).find("99984 more pieces"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
