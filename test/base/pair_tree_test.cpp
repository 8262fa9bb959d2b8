// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/pair_tree.hpp>

namespace tessera {
namespace {

using Rows = std::vector<std::string>;

/// Returns the rows of a run of places, whose nodes are pushed one by one: {"1", "(2+3)"}.
Rows rows_of(Size begin, const std::vector<Size>& nodes) {
  Rows rows;
  Size place = begin;
  for (const Size count : nodes) {
    EXPECT_EQ(nodes_in({begin, place - begin}), static_cast<Size>(rows.size()));
    rows.push_back(std::to_string(place));
    join_rows(begin, {place, count}, [&](Size lower, Size upper) {
      EXPECT_EQ(upper + 1, static_cast<Size>(rows.size()));
      rows[lower] = "(" + rows[lower] + "+" + rows[upper] + ")";
      rows.pop_back();
    });
    place += count;
  }
  return rows;
}

TEST(PairTree, AddsPairsAndThenPairsOfPairs) {
  EXPECT_EQ(rows_of(0, {1}), Rows{"0"});
  EXPECT_EQ(rows_of(0, {1, 1, 1, 1}), Rows{"((0+1)+(2+3))"});
  EXPECT_EQ(rows_of(0, {1, 1, 1, 1, 1, 1, 1, 1}), Rows{"(((0+1)+(2+3))+((4+5)+(6+7)))"});
  EXPECT_EQ(rows_of(0, {2, 1, 1, 4}), Rows{"((0+(2+3))+4)"});
}

TEST(PairTree, ARunIsItsLargestNodes) {
  EXPECT_EQ(rows_of(1, {1, 1, 1, 1}), (Rows{"1", "(2+3)", "4"}));
  EXPECT_EQ(rows_of(3, {1, 1, 1, 1, 1}), (Rows{"3", "((4+5)+(6+7))"}));
  EXPECT_EQ(largest_nodes({1, 4}), (std::vector<Range>{{1, 1}, {2, 2}, {4, 1}}));
  EXPECT_EQ(largest_nodes({6, 10}), (std::vector<Range>{{6, 2}, {8, 8}}));
  for (Size begin = 0; begin < 16; ++begin)
    for (Size count = 0; begin + count <= 16; ++count) {
      std::vector<Range> stack;
      for (Size place = begin; place < begin + count; ++place) push_node(stack, {place, 1});
      EXPECT_EQ(stack, largest_nodes({begin, count}));
      EXPECT_EQ(nodes_in({begin, count}), static_cast<Size>(stack.size()));
    }
}

TEST(PairTree, NodesThatAreNoNeighboursWaitForThoseBetween) {
  std::vector<Range> stack;
  EXPECT_EQ(push_node(stack, {0, 1}), 0);
  EXPECT_EQ(push_node(stack, {2, 1}), 0);
  EXPECT_EQ(push_node(stack, {3, 1}), 1);
  EXPECT_EQ(stack, (std::vector<Range>{{0, 1}, {2, 2}}));
}

TEST(PairTree, GrainsOfAllPartsAreThoseOfTheWhole) {
  for (const Size n : {0, 1, 5, 13, 29, 64})
    for (const Size grains : {1, 2, 8, 16})
      for (Size parts = 1; parts <= grains + 2; ++parts) {
        Size end = 0;
        for (Size part = 0; part < parts; ++part) {
          const Range run = balanced_split(grains, parts, part), own = items_of(n, grains, run);
          EXPECT_EQ(own.begin, end);
          end = own.end();
          // A part's own grains are a balanced split of it.
          for (Size g = 0; g < run.count; ++g)
            EXPECT_EQ(balanced_split(own.count, run.count, g).count,
                      balanced_split(n, grains, run.begin + g).count);
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
