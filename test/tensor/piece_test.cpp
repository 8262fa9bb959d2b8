// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/tensor/piece.hpp>

#include "tensor/placements.hpp"

namespace tessera {
namespace {

using namespace test::placements;

const MeshShape kAxes = MeshShape::parse("data=2,fsdp=2,model=3", 12);

/// Returns the range of dimension 0 of n rows of 3 that a rank has.
Range rows_of_rank(Size n, const Cuts& cuts, const MeshShape& mesh, Size rank) {
  const Piece own = piece({n, 3}, cuts, mesh, rank);
  EXPECT_EQ(own.extent[1], 3);
  return {own.offset[0], own.extent[0]};
}

TEST(Piece, NestsTheLaterCutInsideTheEarlier) {
  const MeshShape mesh = MeshShape::parse("a=2,b=2", 4);
  const Cuts cuts = cuts_of({S0, S0});
  // 7 rows: 4 and 3 on the outer axis, then 2+2 and 2+1.
  EXPECT_EQ(rows_of_rank(7, cuts, mesh, 0), (Range{0, 2}));
  EXPECT_EQ(rows_of_rank(7, cuts, mesh, 1), (Range{2, 2}));
  EXPECT_EQ(rows_of_rank(7, cuts, mesh, 2), (Range{4, 2}));
  EXPECT_EQ(rows_of_rank(7, cuts, mesh, 3), (Range{6, 1}));
  EXPECT_EQ(rows_of_rank(1, cuts, mesh, 0), (Range{0, 1}));
  EXPECT_EQ(rows_of_rank(1, cuts, mesh, 3).count, 0);
}

TEST(Piece, OfAxesThatCutAsOneIsBalancedOverTheirProduct) {
  const MeshShape mesh = MeshShape::parse("a=2,b=2", 4);
  const std::vector<Range> of_ten = {{0, 3}, {3, 3}, {6, 2}, {8, 2}};
  for (Size rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(rows_of_rank(10, {{0, {0, 1}}}, mesh, rank), of_ten[rank]);
    EXPECT_EQ(rows_of_rank(10, {{0, {1, 0}}}, mesh, rank), of_ten[rank % 2 * 2 + rank / 2])
        << "the last axis varies fastest, whatever the order of the mesh";
  }
  EXPECT_EQ(rows_of_rank(10, cuts_of({S0, S0}), mesh, 1), (Range{3, 2})) << "nested cuts differ";
}

TEST(Piece, KeepsUnitsWhole) {
  const MeshShape mesh = MeshShape::parse("model=2,expert=2", 4);
  // 4 experts of 5 columns. By model: experts 0-1 and 2-3.
  const Cuts cuts = {{0, {0}, 5}, {0, {1}, 5}};
  EXPECT_EQ(rows_of_rank(20, cuts, mesh, 0), (Range{0, 5}));
  EXPECT_EQ(rows_of_rank(20, cuts, mesh, 3), (Range{15, 5}));
  EXPECT_EQ(rows_of_rank(15, {{0, {1}, 5}}, mesh, 0), (Range{0, 10})) << "2 of 3 experts";
  EXPECT_EQ(rows_of_rank(15, {{0, {1}, 5}}, mesh, 1), (Range{10, 5}));
  EXPECT_EQ(rows_of_rank(5, {{0, {1}, 5}}, mesh, 1).count, 0) << "fewer experts than ranks";
}

// Three samples of five positions are 15 rows.
TEST(Piece, CutsRowsAsOne) {
  const MeshShape mesh = MeshShape::parse("model=4", 4);
  const Cuts rows{{.dimension = 0, .axes = {0}, .joined = 2}};
  EXPECT_EQ(piece({3, 5, 7}, rows, mesh, 0), (Piece{{0, 0, 0}, {4, 1, 7}}));
  EXPECT_EQ(piece({3, 5, 7}, rows, mesh, 3), (Piece{{12, 0, 0}, {3, 1, 7}}));
}

TEST(Piece, GoesRoundARing) {
  const MeshShape mesh = MeshShape::parse("context=3", 3);
  const Cuts shifted{{.dimension = 0, .axes = {0}, .shift = 1}};
  EXPECT_EQ(piece({7}, shifted, mesh, 0), (Piece{{5}, {2}}));
  EXPECT_EQ(piece({7}, shifted, mesh, 1), (Piece{{0}, {3}}));
}

TEST(Piece, CoversEveryElementOncePerReplica) {
  const std::vector<Cuts> all = {cuts_of({S0, S0, S0}),   cuts_of({S1, R, S0}),
                                 cuts_of({S0, S1, S0}),   cuts_of({R, X, R}),
                                 {{0, {0, 1, 2}}},        {{1, {2, 0}}, {0, {1}}},
                                 {{1, {0}, 4}, {1, {2}}}, {{0, {2}, 2}, {1, {0, 1}, 4}}};
  for (const Shape& shape : {Shape{14, 20}, Shape{2, 12}, Shape{0, 4}, Shape{12, 4}}) {
    for (const Cuts& cuts : all) {
      Size parts = 1;
      for (const Cut& cut : cuts) parts *= kAxes.group_size(cut.axes);
      std::map<Size, Size> held;
      for (Size rank = 0; rank < kAxes.num_ranks(); ++rank) {
        const Piece own = piece(shape, cuts, kAxes, rank);
        for (Size i = 0; i < own.extent[0]; ++i)
          for (Size j = 0; j < own.extent[1]; ++j)
            ++held[(own.offset[0] + i) * shape[1] + own.offset[1] + j];
      }
      EXPECT_EQ(static_cast<Size>(held.size()), num_elements(shape));
      for (const auto& [element, count] : held) EXPECT_EQ(count, kAxes.num_ranks() / parts);
    }
  }
}

}  // namespace
}  // namespace tessera
