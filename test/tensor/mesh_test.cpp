// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>

#include <tessera/tensor/mesh.hpp>

#include "device_data.hpp"
#include "expect_error.hpp"

namespace tessera {
namespace {

/// Sum of the world ranks in the group of `comm`.
Size sum_of_ranks(const Communicator& comm, Size rank) {
  const Vector<std::int64_t> sum = test::to_device<std::int64_t>({rank});
  comm.all_reduce(sum);
  return test::to_host(sum)[0];
}

/// The same from coordinates: ranks that agree with `rank` along all other axes.
Size expected_sum(const MeshShape& shape, Size rank, const std::vector<std::string>& along) {
  Size sum = 0;
  for (Size other = 0; other < shape.num_ranks(); ++other) {
    bool same = true;
    for (std::size_t a = 0; a < shape.num_axes(); ++a) {
      const bool free = std::find(along.begin(), along.end(), shape.axes()[a].name) != along.end();
      same = same && (free || shape.coordinate(rank, a) == shape.coordinate(other, a));
    }
    if (same) sum += other;
  }
  return sum;
}

MeshShape cube(Size ranks) {
  return MeshShape::fit(
      {{"data", -1}, {"fsdp", ranks % 2 == 0 ? 2 : 1}, {"model", ranks % 4 == 0 ? 2 : 1}}, ranks);
}

TEST(Mesh, AxisCommunicatorsFollowTheCoordinates) {
  const Communicator world = Communicator::world();
  const Mesh mesh(world, cube(world.size()));
  EXPECT_EQ(mesh.rank(), world.rank());
  for (std::size_t a = 0; a < mesh.shape().num_axes(); ++a) {
    const Axis& axis = mesh.shape().axes()[a];
    EXPECT_EQ(mesh.axis(axis.name).size(), axis.size);
    EXPECT_EQ(mesh.axis(axis.name).rank(), mesh.coordinates()[a]);
    EXPECT_EQ(mesh.axis(axis.name).axis(), axis.name);
    EXPECT_EQ(sum_of_ranks(mesh.axis(a), mesh.rank()),
              expected_sum(mesh.shape(), mesh.rank(), {axis.name}));
  }
  EXPECT_EQ(mesh.axis("pipeline").size(), 1);
}

TEST(Mesh, ProductGroupsAreMadeOnceAndNamedByTheirAxes) {
  const Communicator world = Communicator::world();
  const Mesh mesh(world, cube(world.size()));
  const MeshShape& shape = mesh.shape();
  for (const auto& axes : {std::vector<std::string>{"data", "fsdp"},
                           {"model", "data"},
                           {"fsdp", "model"},
                           {"data", "fsdp", "model"},
                           {"data", "pipeline"}}) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      const Communicator group = mesh.over(axes);
      EXPECT_EQ(group.size(), shape.group_size(axes));
      if (group.size() > 1) {
        EXPECT_EQ(group.axis(), shape.group_name(axes));
      }
      EXPECT_EQ(sum_of_ranks(group, mesh.rank()), expected_sum(shape, mesh.rank(), axes));
    }
  }
  if (world.size() == 8) {
    EXPECT_EQ(mesh.over({"model", "data"}).axis(), "data+model");
    EXPECT_EQ(mesh.over({"model", "data"}).rank(),
              2 * mesh.coordinates()[0] + mesh.coordinates()[2]);
  }
}

TEST(Mesh, MustFitTheRanks) {
  const Communicator world = Communicator::world();
  const std::string message = test::error_of([&] {
    Mesh(world, MeshShape({{"data", world.size() + 1}}));
  });
  EXPECT_EQ(message.rfind("mesh = data=", 0), 0u) << message;
}

}  // namespace
}  // namespace tessera
