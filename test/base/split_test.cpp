// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/split.hpp>

namespace tessera {
namespace {

TEST(BalancedSplit, CoversEveryItemOnceInPartsThatDifferByOneAtMost) {
  for (Size n : {0, 1, 2, 7, 64, 97}) {
    for (Size parts : {1, 2, 3, 8, 13}) {
      Size next = 0;
      for (Size i = 0; i < parts; ++i) {
        const Range r = balanced_split(n, parts, i);
        EXPECT_EQ(r.begin, next);
        EXPECT_EQ(r.count, n / parts + (i < n % parts ? 1 : 0));
        next = r.end();
      }
      EXPECT_EQ(next, n);
    }
  }
}

TEST(Split, GivesEachIndexToOnePartInWholeUnits) {
  for (const Size units : {0, 1, 5, 7, 16, 29})
    for (const Size parts : {1, 2, 3, 8})
      for (const Size unit : {1, 4})
        for (const bool zigzag : {true, false}) {
          const Split split{units, parts, unit, zigzag};
          std::vector<int> owners(static_cast<std::size_t>(split.total()));
          Size next = 0;
          for (Size part = 0; part < parts; ++part) {
            EXPECT_EQ(split.place(part).begin, next);
            next += split.count(part);
            const Range one = split.run(part, 0), two = split.run(part, 1);
            EXPECT_EQ(one.count + two.count, split.count(part));
            for (const Range& run : {one, two}) {
              EXPECT_TRUE(run.begin % unit == 0 && run.count % unit == 0);
              for (Size i = run.begin; i < run.end(); ++i) ++owners.at(static_cast<std::size_t>(i));
            }
          }
          EXPECT_EQ(owners, std::vector<int>(owners.size(), 1)) << units << " over " << parts;
        }
}

/// Parts of blocks are nodes of one tree over the blocks, whatever the number of parts, and no part
/// of any number of units is larger than the first.
TEST(Split, GivesEachPartOneNodeOfTheBlocks) {
  for (const Size blocks : {1, 2, 8})
    for (const Size parts : {1, 2, 3, 5, 8, 13})
      for (Size units = 0; units < 20; ++units) {
        const Split split{units, parts, 3, false, blocks};
        Size next = 0, next_block = 0;
        for (Size part = 0; part < parts; ++part) {
          const Range own = split.blocks_of(part), place = split.place(part);
          EXPECT_EQ(own.begin, std::exchange(next_block, own.end()));
          EXPECT_EQ(place.begin, std::exchange(next, place.end()));
          EXPECT_TRUE(own.count == 0 || (std::has_single_bit(std::uint64_t(own.count)) &&
                                         own.begin % own.count == 0));
          if (own.count > 0) {
            EXPECT_EQ(split.block(own.begin).begin, place.begin);
          }
          EXPECT_LE(place.count, split.count(0));
          EXPECT_LE(place.count, (Split{units + 1, parts, 3, false, blocks}.count(0)));
          EXPECT_EQ(place.count % 3, 0);
        }
        EXPECT_EQ(next, 3 * units);
        EXPECT_EQ(next_block, blocks);
      }
}

TEST(Split, ZigzagGivesHalvesFromBothEnds) {
  const SplitPart first{{7, 2, 1, true}, 0}, second{{7, 2, 1, true}, 1};
  EXPECT_EQ(first.own_run(0), (Range{0, 2}));
  EXPECT_EQ(second.own_run(0), (Range{2, 2}));
  EXPECT_EQ(second.own_run(1), (Range{4, 1}));
  EXPECT_EQ(first.own_run(1), (Range{5, 2}));
}

/// Ranks that split positions must have whole blocks of the same indices, whatever their number.
TEST(Split, PartsWithZigzagHaveTheRunsOfTheirBlocks) {
  for (const Size units : {0, 1, 5, 7, 16, 29})
    for (const Size blocks : {1, 2, 4, 8})
      for (const Size parts : {1, 2, 3, 4, 5, 8, 13}) {
        const Split split{units, parts, 1, true, blocks}, of_blocks{units, blocks, 1, true, blocks};
        Size next = 0;
        for (Size part = 0; part < parts; ++part) {
          const Range own = split.blocks_of(part);
          EXPECT_EQ(own.begin, next);
          next = own.end();
          for (const Size number : {0, 1}) {
            Range run = split.run(part, number);
            for (Size b = own.begin; b < own.end(); ++b) {
              const Range of_block =
                  of_blocks.run(number == 0 ? b : own.end() - 1 + own.begin - b, number);
              EXPECT_EQ(of_block.begin, run.begin) << units << " in " << blocks << " on " << parts;
              run = {of_block.end(), run.count - of_block.count};
            }
            EXPECT_EQ(run.count, 0);
          }
        }
        EXPECT_EQ(next, blocks);
      }
}

}  // namespace
}  // namespace tessera
