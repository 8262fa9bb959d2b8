// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include <tessera/checkpoint/hyperslabs.hpp>

namespace tessera {
namespace {

/// Returns the flat indices in the whole tensor, in the order of the hyperslabs.
std::vector<Size> places_in(const std::vector<Hyperslab>& slabs, const Shape& whole) {
  std::vector<Size> places;
  for (const Hyperslab& slab : slabs) {
    const GlobalIndex place(whole, {slab.first, slab.count});
    for (Size i = 0; i < num_elements(slab.count); ++i) places.push_back(place(i));
  }
  return places;
}

/// Checks hyperslabs and runs of every range of a block against its elements.
void expect_all_ranges(const Shape& whole, const Piece& block) {
  const GlobalIndex place_of(whole, block);
  const Size all = num_elements(block.extent);
  for (Size begin = 0; begin <= all; ++begin)
    for (Size end = begin; end <= all; ++end) {
      std::vector<Size> expected, run_places;
      for (Size i = begin; i < end; ++i) expected.push_back(place_of(i));
      const std::vector<Hyperslab> slabs = hyperslabs_of(block, {begin, end - begin});
      ASSERT_EQ(places_in(slabs, whole), expected);
      ASSERT_LE(slabs.size(), 2 * whole.size() - 1);
      Size next = begin;
      for_each_run(whole, block, {begin, end - begin}, [&](Size first, Size place, Size count) {
        ASSERT_EQ(first, next);
        for (Size i = 0; i < count; ++i) run_places.push_back(place + i);
        next += count;
      });
      ASSERT_EQ(run_places, expected);
    }
}

TEST(Hyperslabs, CoverEveryRangeOfABlock) {
  expect_all_ranges({7}, {{2}, {4}});
  expect_all_ranges({5, 7}, {{0, 0}, {5, 7}});
  expect_all_ranges({5, 7}, {{1, 3}, {3, 2}});
  expect_all_ranges({3, 4, 5}, {{0, 1, 0}, {3, 2, 5}});
  expect_all_ranges({3, 2, 2, 3}, {{0, 0, 0, 1}, {3, 2, 2, 2}});
  expect_all_ranges({5, 7}, {{5, 0}, {0, 7}});
}

TEST(Hyperslabs, WholeRowsAreOneHyperslabAndOneRun) {
  const Piece whole{{0, 0}, {5, 7}};
  EXPECT_EQ(hyperslabs_of(whole, {0, 35}), (std::vector<Hyperslab>{{{0, 0}, {5, 7}}}));
  EXPECT_EQ(hyperslabs_of(whole, {7, 14}), (std::vector<Hyperslab>{{{1, 0}, {2, 7}}}));
  int runs = 0;
  for_each_run({5, 7}, whole, {3, 30}, [&](Size, Size, Size) { ++runs; });
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace tessera
