// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>

#include <tessera/tensor/mesh_layout.hpp>

namespace tessera {
namespace {

TEST(LayoutText, DrawsALine) {
  EXPECT_EQ(layout_text(MeshShape::parse("data=4", 4)),
            "  data |  0  1  2  3\n"
            "  -----+------------\n"
            "  rank |  0  1  2  3\n");
}

TEST(LayoutText, DrawsRowsAndColumns) {
  EXPECT_EQ(layout_text(MeshShape::parse("data=2,model=3", 6)),
            "  data \\ model |  0  1  2\n"
            "  -------------+---------\n"
            "             0 |  0  1  2\n"
            "             1 |  3  4  5\n");
}

TEST(LayoutText, DrawsOneGridPerOuterCoordinate) {
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

TEST(MeshInfo, IsJson) {
  EXPECT_EQ(
      mesh_info(MeshShape::parse("data=2,model=4", 8)).dump(),
      R"({"axis_names":["data","model"],"num_ranks":8,"shape":[2,4],"spec":"data=2,model=4"})");
}

}  // namespace
}  // namespace tessera
