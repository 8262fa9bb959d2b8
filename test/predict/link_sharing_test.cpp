// SPDX-License-Identifier: Apache-2.0
// Which calls leave a block of ranks, against a count of all of them.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <tessera/predict/link_sharing.hpp>

namespace tessera {
namespace {

/// Counts in each block the groups that also have ranks elsewhere.
Size counted_groups(const MeshShape& mesh, AxisSet axes, Size width) {
  std::map<Size, std::set<Size>> leaving;  // by block
  for (Size rank = 0; rank < mesh.num_ranks(); ++rank)
    for (const Size other : mesh.group(axes, rank))
      if (rank / width != other / width)
        leaving[rank / width].insert(mesh.first_of_group(axes, rank));
  std::size_t most = 0;
  for (const auto& [block, groups] : leaving) most = std::max(most, groups.size());
  return static_cast<Size>(most);
}

TEST(LinkSharing, CountsGroupsThatLeaveABlock) {
  for (const auto& [text, ranks] : {std::pair("data=4,model=2", 8), std::pair("data=8,model=3", 24),
                                    std::pair("data=2,pipeline=3,model=5", 30),
                                    std::pair("pipeline=7,data=3", 21), std::pair("data=37", 37)}) {
    const MeshShape mesh = MeshShape::parse(text, ranks);
    for (const AxisSet axes : {mesh.axes_named({"data"}), mesh.axes_named({"model"}),
                               mesh.axes_named({"data", "model"}), mesh.all_axes()})
      for (Size width = 1; width <= ranks + 1; ++width)
        EXPECT_EQ(groups_leaving(mesh, axes, width), counted_groups(mesh, axes, width))
            << text << " " << mesh.group_name(axes) << " " << width;
  }
}

TEST(LinkSharing, CountsMessagesThatLeaveABlock) {
  const MeshShape outer = MeshShape::parse("pipeline=4,data=2", 8),
                  inner = MeshShape::parse("data=2,pipeline=4", 8);
  EXPECT_EQ(messages_leaving(outer, 0, 1, 4), 0);
  EXPECT_EQ(messages_leaving(outer, 1, 2, 4), 2);
  EXPECT_EQ(messages_leaving(outer, 2, 1, 4), 2);
  EXPECT_EQ(messages_leaving(outer, 3, 0, 4), 2);
  EXPECT_EQ(messages_leaving(outer, 0, 1, 3), 1);  // rank 1 sends to rank 3
  EXPECT_EQ(messages_leaving(inner, 1, 2, 4), 0);
  EXPECT_EQ(messages_leaving(inner, 1, 2, 2), 1);
}

}  // namespace
}  // namespace tessera
