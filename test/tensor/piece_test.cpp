// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/tensor/piece.hpp>

#include "tensor/placements.hpp"

namespace tessera {
namespace {

using namespace test::placements;

/// Expects that the ranks of a mesh with two axes of two ranks have these ranges of n elements.
void expect_pieces(Size n, const Cuts& cuts, const std::vector<Range>& ranges) {
  const MeshShape mesh = MeshShape::parse("a=2,b=2", 4);
  for (Size rank = 0; rank < 4; ++rank) {
    const Piece own = piece({n}, cuts, mesh, rank);
    EXPECT_EQ((Range{own.offset[0], own.extent[0]}), ranges[rank]) << rank;
  }
}

TEST(Piece, FollowsTheCuts) {
  // 7 elements: 4 and 3 on the outer axis, then 2 + 2 and 2 + 1.
  expect_pieces(7, cuts_of({S0, S0}), {{0, 2}, {2, 2}, {4, 2}, {6, 1}});
  expect_pieces(10, cuts_of({S0, S0}), {{0, 3}, {3, 2}, {5, 3}, {8, 2}});
  expect_pieces(1, cuts_of({S0, S0}), {{0, 1}, {1, 0}, {1, 0}, {1, 0}});
  // Axes that cut as one are balanced over their product; the last one varies fastest.
  expect_pieces(10, {{0, {0, 1}}}, {{0, 3}, {3, 3}, {6, 2}, {8, 2}});
  // Experts of five columns stay whole.
  expect_pieces(20, {{0, {0}, 5}, {0, {1}, 5}}, {{0, 5}, {5, 5}, {10, 5}, {15, 5}});
  expect_pieces(15, {{0, {1}, 5}}, {{0, 10}, {10, 5}, {0, 10}, {10, 5}});
  expect_pieces(5, {{0, {1}, 5}}, {{0, 5}, {5, 0}, {0, 5}, {5, 0}});
  // Tensors that go round a ring.
  expect_pieces(7, {{.dimension = 0, .axes = {0}, .shift = 1}}, {{4, 3}, {4, 3}, {0, 4}, {0, 4}});
}

// Three samples of five positions are 15 rows.
TEST(Piece, CutsRowsAsOne) {
  const MeshShape mesh = MeshShape::parse("model=4", 4);
  const Cuts rows{{.dimension = 0, .axes = {0}, .joined = 2}};
  EXPECT_EQ(piece({3, 5, 7}, rows, mesh, 0), (Piece{{0, 0, 0}, {4, 1, 7}}));
  EXPECT_EQ(piece({3, 5, 7}, rows, mesh, 3), (Piece{{12, 0, 0}, {3, 1, 7}}));
}

TEST(Piece, CoversEveryElementOncePerReplica) {
  const MeshShape mesh = MeshShape::parse("data=2,fsdp=2,model=3", 12);
  const std::vector<Cuts> all = {cuts_of({S0, S0, S0}),   cuts_of({S1, R, S0}),
                                 cuts_of({S0, S1, S0}),   cuts_of({R, X, R}),
                                 {{0, {0, 1, 2}}},        {{1, {0, 2}}, {0, {1}}},
                                 {{1, {0}, 4}, {1, {2}}}, {{0, {2}, 2}, {1, {0, 1}, 4}}};
  for (const Shape& shape : {Shape{14, 20}, Shape{2, 12}, Shape{0, 4}, Shape{12, 4}})
    for (const Cuts& cuts : all) {
      Size parts = 1;
      for (const Cut& cut : cuts) parts *= mesh.group_size(cut.axes);
      std::map<Size, Size> held;
      for (Size rank = 0; rank < mesh.num_ranks(); ++rank) {
        const Piece own = piece(shape, cuts, mesh, rank);
        const GlobalIndex index(shape, own);
        for (Size i = 0; i < num_elements(own.extent); ++i) ++held[index(i)];
      }
      EXPECT_EQ(static_cast<Size>(held.size()), num_elements(shape));
      for (const auto& [element, count] : held) EXPECT_EQ(count, mesh.num_ranks() / parts);
    }
}

}  // namespace
}  // namespace tessera
