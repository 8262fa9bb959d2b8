// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/tensor/sharded_tensor.hpp>

#include "expect_error.hpp"
#include "tensor/placements.hpp"

namespace tessera {
namespace {

using test::error_of;
using namespace test::placements;

TEST(ShardedTensor, GivesItsPieceAsAMatrix) {
  const Communicator world = Communicator::world();
  const Mesh mesh(world, MeshShape({{"data", world.size()}}));
  const ShardedTensor<float> tensor(mesh, {5, 3}, {S0});
  const Matrix<float> block = tensor.local_matrix();
  EXPECT_EQ(static_cast<Size>(block.extent(0)), tensor.piece().extent[0]);
  EXPECT_EQ(block.extent(1), 3u);
  EXPECT_EQ(block.data(), tensor.local().data());
  EXPECT_EQ(ShardedTensor<float>(mesh, {3}, {R}).local_matrix().extent(0), 1u);
  EXPECT_NE(error_of([&] { ShardedTensor<float>(mesh, {1, 2, 3}, {R}).local_matrix(); }), "");
}

TEST(ShardedTensor, RejectsShapesAndViewsThatDoNotFit) {
  const Communicator world = Communicator::world();
  const Mesh mesh(world, MeshShape({{"data", world.size()}}));
  EXPECT_NE(error_of([&] { ShardedTensor<float>(mesh, {2, 2}, {R}, Vector<float>("x", 5)); }), "");
  EXPECT_NE(error_of([&] { ShardedTensor<float>(mesh, {1, 1, 1, 1, 1}, {R}); }), "");
  EXPECT_NE(error_of([&] { ShardedTensor<float>(mesh, {-1}, {R}); }), "");
  EXPECT_NE(error_of([&] { ShardedTensor<float>(mesh, {4}, {S1}); }), "");
  EXPECT_NE(error_of([&] { ShardedTensor<float>(mesh, {4}, {R, R}); }), "");
}

}  // namespace
}  // namespace tessera
