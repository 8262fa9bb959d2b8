// SPDX-License-Identifier: Apache-2.0
// The runs of a piece are its elements, in order, at their places in the whole tensor.
#include <vector>

#include <gtest/gtest.h>

#include <tessera/checkpoint/runs.hpp>

namespace tessera {
namespace {

/// A run: index in the piece, place in the tensor, number of elements.
using OneRun = std::vector<Size>;

std::vector<OneRun> runs_of(const Shape& whole, const Piece& piece, Range elements) {
  std::vector<OneRun> runs;
  for_each_run(whole, piece, elements, [&](Size first, Size place, Size count) {
    runs.push_back({first, place, count});
  });
  return runs;
}

using Runs = std::vector<OneRun>;

TEST(Runs, OfWholeRowsIsOne) {
  EXPECT_EQ(runs_of({4, 5}, {{0, 0}, {4, 5}}, {3, 9}), (Runs{{3, 3, 9}}));
  EXPECT_EQ(runs_of({4, 5}, {{2, 0}, {2, 5}}, {0, 10}), (Runs{{0, 10, 10}}));
  EXPECT_EQ(runs_of({7}, {{3}, {4}}, {1, 2}), (Runs{{1, 4, 2}}));
  EXPECT_EQ(runs_of({}, {{}, {}}, {0, 1}), (Runs{{0, 0, 1}}));
}

// Held against the elements, one by one, for every range.
TEST(Runs, CoverEveryElementOnce) {
  const Shape whole{3, 4, 5};
  for (const Piece& piece : std::vector<Piece>{{{0, 0, 0}, {3, 4, 5}},
                                               {{1, 0, 0}, {2, 4, 5}},
                                               {{0, 1, 0}, {3, 2, 5}},
                                               {{0, 0, 2}, {3, 4, 2}},
                                               {{1, 1, 1}, {2, 3, 3}}}) {
    const Size all = num_elements(piece.extent);
    for (Size begin = 0; begin < all; ++begin)
      for (Size count = 0; begin + count <= all; ++count) {
        Size next = begin;
        for (const OneRun& run : runs_of(whole, piece, {begin, count}))
          for (Size i = 0; i < run[2]; ++i, ++next) {
            ASSERT_EQ(run[0] + i, next);
            const Size column = next % piece.extent[2], row = next / piece.extent[2];
            const Size place = ((row / piece.extent[1] + piece.offset[0]) * whole[1] +
                                row % piece.extent[1] + piece.offset[1]) *
                                   whole[2] +
                               column + piece.offset[2];
            ASSERT_EQ(run[1] + i, place);
          }
        ASSERT_EQ(next, begin + count);
      }
  }
}

}  // namespace
}  // namespace tessera
