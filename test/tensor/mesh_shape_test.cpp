// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/tensor/mesh_shape.hpp>

#include "expect_error.hpp"

namespace tessera {
namespace {

using test::error_of;

TEST(MeshShape, LastAxisVariesFastest) {
  const MeshShape mesh = MeshShape::parse("data=2,fsdp=3,model=4", 24);
  EXPECT_EQ(mesh.coordinates(1), (std::vector<Size>{0, 0, 1}));
  EXPECT_EQ(mesh.coordinates(4), (std::vector<Size>{0, 1, 0}));
  EXPECT_EQ(mesh.coordinates(23), (std::vector<Size>{1, 2, 3}));
  for (Size rank = 0; rank < mesh.num_ranks(); ++rank)
    EXPECT_EQ(mesh.rank_at(mesh.coordinates(rank)), rank);
}

// If -1 stood for all ranks, the second mesh would be 8 x 4.
TEST(MeshShape, SpellsWhatItParses) {
  const auto spelled = [](const char* text, Size ranks) {
    return MeshShape::parse(text, ranks).to_string();
  };
  EXPECT_EQ(spelled(" data = 2 , model=4", 8), "data=2,model=4");
  EXPECT_EQ(spelled("data=-1,model=4", 8), "data=2,model=4");
  EXPECT_EQ(spelled("data=-1", 5), "data=5");
  EXPECT_EQ(spelled("data=3,model=-1", 3), "data=3,model=1");
  const MeshShape mesh = MeshShape::parse("data=2,model=4", 8);
  EXPECT_EQ(mesh.size_of("model"), 4);
  EXPECT_EQ(mesh.size_of("pipeline"), 1);
  EXPECT_EQ(mesh.find("model"), 1u);
  EXPECT_FALSE(mesh.find("fsdp"));
}

TEST(MeshShape, RejectsWithKeyAndValue) {
  const auto parse = [](const std::string& text, Size ranks) {
    return error_of([=] { MeshShape::parse(text, ranks); });
  };
  struct Rejected {
    std::string text;
    Size ranks;
    std::string allowed;
  };
  for (const auto& [text, ranks, allowed] :
       {Rejected{"data=2,model=4", 6, "the sizes multiply to 8, which does not match the 6 ranks"},
        {"data=-1,model=4", 6,
         "the other sizes multiply to 4, which does not evenly divide the 6 ranks"},
        {"data=-1,model=-1", 4, "only one size may be -1 (the remaining ranks)"},
        {"data=2,data=2", 4, "axis names must be unique, but 'data' is given twice"},
        {"data=0", 1, "sizes must be positive or one -1 (the remaining ranks); 'data' has 0"},
        {"data=two", 1, "the size of 'data' must be a whole number, nodes or per_node"},
        {"data=2x", 2, "the size of 'data' must be a whole number, nodes or per_node"}})
    EXPECT_EQ(parse(text, ranks), "mesh = " + text + ": " + allowed);
  for (const char* text : {"", "data", "data=1,", "=2", "1d=1", "da ta=1", "data=-2",
                           "data=99999999999999999999", "a=4294967296,b=4294967296"})
    EXPECT_TRUE(parse(text, 1).starts_with("mesh = ")) << text;
  EXPECT_NE(error_of([] { MeshShape({{"data", -1}}); }), "");
  EXPECT_NE(error_of([] { MeshShape(std::vector<Axis>{}); }), "");
  EXPECT_EQ(MeshShape({{"data", 2147483647}}).num_ranks(), 2147483647);
  EXPECT_NE(error_of([] {
              MeshShape({{"data", 65536}, {"fsdp", 32768}});
            }).find("has more than 2,147,483,647 ranks"),
            std::string::npos);
  std::vector<Axis> many;
  for (std::size_t a = 0; a <= AxisSet::most_axes; ++a) many.push_back({"a" + std::to_string(a)});
  EXPECT_NE(error_of([&] { MeshShape mesh(many); }).find("has more than 63 axes"),
            std::string::npos);
  EXPECT_EQ(error_of([] { MeshShape::parse("data=2,model=2", 4).require("modle"); }),
            "axis = modle: must be an axis of the mesh data=2,model=2 (nearest: model)");
}

TEST(AxisSet, HasAxesInTheOrderOfTheMesh) {
  const MeshShape mesh = MeshShape::parse("pipeline=2,data=3,fsdp=1,model=2", 12);
  const AxisSet axes = mesh.axes_named({"model", "fsdp", "data", "expert"});
  EXPECT_EQ(axes, (AxisSet{1, 2, 3}));
  EXPECT_EQ(mesh.group_name(axes), "data+model");
  EXPECT_EQ(mesh.group_size(axes), 6);
  EXPECT_EQ(mesh.coordinate(11, axes), 5);
  EXPECT_EQ(mesh.all_axes() - axes, AxisSet{0});
  EXPECT_EQ((axes & AxisSet{0, 3}) | AxisSet{63}, (AxisSet{3, 63}));
  EXPECT_TRUE((axes - axes).empty());
  EXPECT_FALSE(axes.contains(0));
}

TEST(MeshShape, NumbersNeighboursOfARun) {
  const MeshShape mesh = MeshShape({{"model", 6}, {"data", 2}}).with_repeats("model", 3);
  const AxisSet repeats = mesh.repeats();
  std::vector<Size> numbers, first;
  for (Size rank = 0; rank < 12; ++rank) {
    numbers.push_back(mesh.coordinate(rank, repeats));
    first.push_back(mesh.first_of_group(repeats, rank));
  }
  EXPECT_EQ(numbers, (std::vector<Size>{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(first, (std::vector<Size>{0, 1, 0, 1, 0, 1, 6, 7, 6, 7, 6, 7}));
  EXPECT_EQ(mesh.group_name(repeats | AxisSet{1}), "data+repeats");
  EXPECT_EQ(mesh.axes_named({"data", "repeats"}), repeats | AxisSet{1});
  EXPECT_EQ(mesh.group_size(repeats | AxisSet{1}), 6);
  EXPECT_EQ(mesh.to_string(), "model=6,data=2");
  EXPECT_TRUE((mesh.all_axes() & repeats).empty());
  EXPECT_EQ(MeshShape({{"model", 6}}).group_size(repeats), 1);
}

TEST(MeshShape, CountsGroupMembersBelowARank) {
  const MeshShape mesh =
      MeshShape::parse("pipeline=2,data=3,fsdp=2,model=2", 24).with_repeats("data", 3);
  for (const AxisSet axes :
       {AxisSet{1}, {0, 2}, {3}, {1, 3}, {}, mesh.repeats(), mesh.repeats() | AxisSet{0, 3}}) {
    Size below = 0;
    for (Size rank = 0; rank <= 30; ++rank) {
      EXPECT_EQ(mesh.group_below(axes, rank), below) << rank;
      if (rank < 24 && mesh.first_of_group(axes, rank) == 0) ++below;
    }
  }
}

}  // namespace
}  // namespace tessera
