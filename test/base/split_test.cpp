// SPDX-License-Identifier: Apache-2.0
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

TEST(Split, ZigzagGivesHalvesFromBothEnds) {
  const SplitPart first{{7, 2, 1, true}, 0}, second{{7, 2, 1, true}, 1};
  EXPECT_EQ(first.own_run(0), (Range{0, 2}));
  EXPECT_EQ(second.own_run(0), (Range{2, 2}));
  EXPECT_EQ(second.own_run(1), (Range{4, 1}));
  EXPECT_EQ(first.own_run(1), (Range{5, 2}));
}

}  // namespace
}  // namespace tessera
