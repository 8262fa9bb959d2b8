// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>

#include <tessera/tensor/mesh_layout.hpp>

namespace tessera {
namespace {

TEST(LayoutText, DrawsOneGridPerOuterCoordinate) {
  EXPECT_EQ(layout_text(MeshShape::parse("data=4", 4)),
            "  data |  0  1  2  3\n"
            "  -----+------------\n"
            "  rank |  0  1  2  3\n");
  EXPECT_EQ(layout_text(MeshShape::parse("pipeline=2,data=1,model=2", 4)),
            "pipeline=0\n"
            "  data \\ model |  0  1\n"
            "  -------------+------\n"
            "             0 |  0  1\n"
            "pipeline=1\n"
            "  data \\ model |  0  1\n"
            "  -------------+------\n"
            "             0 |  2  3\n");
}

TEST(LayoutText, IsShortForBigMeshes) {
  for (const char* text : {"data=-1", "data=-1,model=100", "pipeline=100,data=100,model=-1"}) {
    const std::string layout = layout_text(MeshShape::parse(text, 100000));
    EXPECT_NE(layout.find("..."), std::string::npos);
    EXPECT_NE(layout.find("99999"), std::string::npos);
    EXPECT_LT(std::count(layout.begin(), layout.end(), '\n'), 100);
  }
}

TEST(VisualizeMesh, NamesShapeAndAxes) {
  EXPECT_EQ(visualize_mesh(MeshShape::parse("data=2,model=1", 2)).substr(0, 69),
            "Mesh shape: (2, 1)\nAxis names: ('data', 'model')\nRank layout (2 ranks");
  EXPECT_EQ(visualize_mesh(MeshShape::parse("data=1", 1)).substr(0, 38),
            "Mesh shape: (1,)\nAxis names: ('data',)");
}

TEST(InspectSharding, ListsPiecesAndTheirHolders) {
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
  EXPECT_NE(inspect_sharding("x", {200000}, {Placement::shard(0)},
                             MeshShape::parse("data=100000", 100000))
                .find("99984 more pieces"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
