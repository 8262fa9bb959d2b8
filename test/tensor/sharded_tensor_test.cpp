// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/tensor/redistribute.hpp>

#include "device_data.hpp"
#include "expect_error.hpp"
#include "tensor/placements.hpp"

namespace tessera {
namespace {

using test::error_of;
using test::to_device;
using test::to_host;
using namespace test::placements;

struct Squares {
  KOKKOS_FUNCTION double operator()(Size i) const { return static_cast<double>(i * i); }
};

Mesh line() {
  const Communicator world = Communicator::world();
  return Mesh(world, MeshShape({{"data", world.size()}}));
}

TEST(ShardedTensor, EveryRankComputesItsOwnBlock) {
  const Mesh mesh = line();
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{5, 3}, Shape{1, 2, 3}, Shape{2, 3, 2, 5}}) {
    std::vector<double> full;
    for (Size i = 0; i < num_elements(shape); ++i) full.push_back(static_cast<double>(i * i));
    for (int dim = -1; dim < static_cast<int>(shape.size()); ++dim) {
      const Placements placements = {dim < 0 ? R : Placement::shard(dim)};
      const auto computed = from_function<double>(mesh, shape, placements, Squares());
      const auto cut = from_global(mesh, shape, placements, to_device(full));
      EXPECT_EQ(to_host(computed.local()), to_host(cut.local()));
      EXPECT_EQ(to_host(to_global(computed)), full);
    }
  }
}

TEST(ShardedTensor, PartialHoldsTheValueOnce) {
  const Mesh mesh = line();
  const auto tensor = from_function<double>(mesh, {4, 2}, {X}, Squares());
  EXPECT_EQ(to_host(to_global(tensor)), (std::vector<double>{0, 1, 4, 9, 16, 25, 36, 49}));
  if (mesh.rank() != 0) {
    EXPECT_EQ(to_host(tensor.local()), std::vector<double>(8, 0.0));
  }
}

TEST(ShardedTensor, GivesItsBlockAsAMatrix) {
  const Mesh mesh = line();
  const ShardedTensor<float> tensor(mesh, {5, 3}, {S0});
  const Matrix<float> block = tensor.local_matrix();
  EXPECT_EQ(static_cast<Size>(block.extent(0)), tensor.piece().extent[0]);
  EXPECT_EQ(block.extent(1), 3u);
  EXPECT_EQ(block.data(), tensor.local().data());
  EXPECT_EQ(ShardedTensor<float>(mesh, {3}, {R}).local_matrix().extent(0), 1u);
  EXPECT_NE(error_of([&] { ShardedTensor<float>(mesh, {1, 2, 3}, {R}).local_matrix(); }), "");
}

TEST(ShardedTensor, RejectsShapesAndViewsThatDoNotFit) {
  const Mesh mesh = line();
  EXPECT_NE(error_of([&] { ShardedTensor<float>(mesh, {2, 2}, {R}, Vector<float>("x", 5)); }), "");
  EXPECT_NE(error_of([&] { ShardedTensor<float>(mesh, {1, 1, 1, 1, 1}, {R}); }), "");
  EXPECT_NE(error_of([&] { ShardedTensor<float>(mesh, {-1}, {R}); }), "");
  EXPECT_NE(error_of([&] { ShardedTensor<float>(mesh, {4}, {S1}); }), "");
  EXPECT_NE(error_of([&] { ShardedTensor<float>(mesh, {4}, {R, R}); }), "");
}

}  // namespace
}  // namespace tessera
