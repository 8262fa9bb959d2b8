// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>

#include <tessera/tensor/mesh.hpp>

#include "device_data.hpp"
#include "expect_error.hpp"

namespace tessera {
namespace {

/// The sum of the ranks that agree with `rank` along all axes but these.
Size expected_sum(const MeshShape& shape, Size rank, AxisSet axes) {
  Size sum = 0;
  for (Size other = 0; other < shape.num_ranks(); ++other)
    if (shape.first_of_group(axes, other) == shape.first_of_group(axes, rank)) sum += other;
  return sum;
}

TEST(Mesh, GroupsFollowTheCoordinates) {
  const Communicator world = Communicator::world();
  const Size ranks = world.size();
  const Mesh mesh(world, MeshShape::fit({{"data", -1},
                                         {"fsdp", ranks % 2 == 0 ? 2 : 1},
                                         {"model", ranks % 4 == 0 ? 2 : 1}},
                                        ranks));
  const MeshShape& shape = mesh.shape();
  EXPECT_EQ(mesh.rank(), world.rank());
  for (std::size_t a = 0; a < shape.num_axes(); ++a) {
    EXPECT_EQ(mesh.axis(a).rank(), mesh.coordinates()[a]);
    EXPECT_EQ(mesh.axis(a).axis(), shape.axes()[a].name);
    EXPECT_EQ(mesh.axis(shape.axes()[a].name).size(), shape.axes()[a].size);
  }
  EXPECT_EQ(mesh.axis("pipeline").size(), 1);
  for (const AxisSet axes : {AxisSet{}, {0}, {1}, {2}, {0, 1}, {2, 0}, {1, 2}, {0, 1, 2}})
    for (int repeat = 0; repeat < 2; ++repeat) {
      const Communicator group = mesh.over(axes);
      EXPECT_EQ(group.size(), shape.group_size(axes));
      EXPECT_TRUE(group.size() == 1 || group.axis() == shape.group_name(axes));
      const Vector<std::int64_t> sum = test::to_device<std::int64_t>({mesh.rank()});
      group.all_reduce(sum);
      EXPECT_EQ(test::to_host(sum)[0], expected_sum(shape, mesh.rank(), axes));
    }
  if (ranks == 8) {
    EXPECT_EQ(mesh.over({"model", "data", "pipeline"}).axis(), "data+model");
    EXPECT_EQ(mesh.over({"model", "data"}).rank(),
              2 * mesh.coordinates()[0] + mesh.coordinates()[2]);
  }
}

TEST(Mesh, MustFitTheRanks) {
  const Communicator world = Communicator::world();
  const std::string message = test::error_of([&] {
    Mesh(world, MeshShape({{"data", world.size() + 1}}));
  });
  EXPECT_TRUE(message.starts_with("mesh = data=")) << message;
}

}  // namespace
}  // namespace tessera
