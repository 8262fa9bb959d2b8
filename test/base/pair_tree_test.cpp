// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/pair_tree.hpp>

namespace tessera {
namespace {

/// Returns the sum of the places in `runs` as text: "((0+1)+(2+3))".
std::string tree_of(const std::vector<Range>& runs) {
  std::map<Size, std::string> open;
  for (const Range& run : runs) {
    open[run.begin] = std::to_string(run.begin);
    join_complete_nodes(run, [&](Size to, Size from) {
      open[to] = "(" + open.at(to) + "+" + open.at(from) + ")";
      open.erase(from);
    });
  }
  return open.size() == 1 ? open.at(0) : "incomplete";
}

TEST(PairTree, AddsPairsAndThenPairsOfPairs) {
  EXPECT_EQ(tree_of({{0, 1}}), "0");
  EXPECT_EQ(tree_of({{0, 1}, {1, 1}, {2, 1}, {3, 1}}), "((0+1)+(2+3))");
  EXPECT_EQ(tree_of({{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 1}}),
            "(((0+1)+(2+3))+((4+5)+(6+7)))");
  EXPECT_EQ(tree_of({{0, 2}, {2, 1}, {3, 1}, {4, 4}}), "((0+(2+3))+4)");
  EXPECT_EQ(tree_of({{0, 1}, {1, 1}, {2, 1}}), "incomplete");
}

TEST(PairTree, OpenNodesHaveDifferentLevels) {
  for (const Size places : {1, 2, 8, 64}) {
    std::map<Size, Size> at_level;  // open nodes but the first
    for (Size place = 0; place < places; ++place) {
      if (place > 0) {
        ASSERT_LT(level_of_node(place), tree_levels(places));
        ASSERT_EQ(at_level.count(level_of_node(place)), 0u) << place;
        at_level[level_of_node(place)] = place;
      }
      join_complete_nodes({place, 1},
                          [&](Size, Size from) { at_level.erase(level_of_node(from)); });
    }
    EXPECT_TRUE(at_level.empty());
  }
}

TEST(PairTree, GrainsOfAllPartsAreThoseOfTheWhole) {
  for (const Size n : {0, 1, 5, 13, 29, 64})
    for (const Size grains : {1, 2, 8, 16})
      for (Size parts = 1; parts <= grains; parts *= 2) {
        Size end = 0;
        for (Size part = 0; part < parts; ++part) {
          const Range own = split_in_grains(n, grains, parts, part);
          EXPECT_EQ(own.begin, end);
          end = own.end();
          // A part's own grains are a balanced split of it.
          const Size each = grains / parts;
          for (Size g = 0; g < each; ++g)
            EXPECT_EQ(balanced_split(own.count, each, g).count,
                      balanced_split(n, grains, part * each + g).count);
        }
        EXPECT_EQ(end, n);
      }
}

TEST(PairTree, BlocksNest) {
  for (Size n = 0; n < 40; ++n)
    for (Size blocks = 1; blocks <= 16; blocks *= 2)
      for (Size b = 0; b < blocks; ++b) {
        const Range block = nested_split(n, blocks, b), left = nested_split(n, 2 * blocks, 2 * b),
                    right = nested_split(n, 2 * blocks, 2 * b + 1);
        EXPECT_EQ(left.begin, block.begin);
        EXPECT_EQ(right.begin, left.end());
        EXPECT_EQ(right.end(), block.end());
        EXPECT_TRUE(blocks > n || block.count > 0);
      }
  EXPECT_EQ(nested_blocks(8, 4), 4);
  EXPECT_EQ(nested_blocks(6, 8), 4);
  EXPECT_EQ(nested_blocks(1, 4), 1);
  EXPECT_EQ(nested_blocks(0, 4), 1);
}

}  // namespace
}  // namespace tessera
