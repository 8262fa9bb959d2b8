// SPDX-License-Identifier: Apache-2.0
#include <set>

#include <gtest/gtest.h>

#include <tessera/tensor/partition_spec.hpp>

#include "expect_error.hpp"

namespace tessera {
namespace {

using test::error_of;
using P = PartitionSpec;

const MeshShape kMesh = MeshShape::parse("data=2,fsdp=2,model=3", 12);
const auto kShard0 = Placement::shard(0);
const auto kShard1 = Placement::shard(1);
const auto kWhole = Placement::replicate();

TEST(PartitionSpec, ReadsAndWritesJaxSpelling) {
  EXPECT_EQ(P::parse("P('data', None)"), (P{{"data"}, {}}));
  EXPECT_EQ(P::parse("PartitionSpec((\"data\", 'fsdp'), None,)"), (P{{"data", "fsdp"}, {}}));
  EXPECT_EQ(P::parse(" P( ) "), P());
  EXPECT_EQ(P::parse("P(('model',))"), (P{{"model"}}));
  for (const char* text : {"P()", "P(None)", "P('data', None)", "P(('data', 'fsdp'), 'model')"}) {
    EXPECT_EQ(P::parse(text).to_string(), text);
  }
}

TEST(PartitionSpec, RejectsOtherText) {
  for (const char* text : {"", "P", "P(", "P('data'", "P(data)", "P('data)", "P('') ", "P('a' 'b')",
                           "P('a'))", "Q('a')", "P(,)", "P(None None)"}) {
    EXPECT_EQ(error_of([=] { P::parse(text); }),
              std::string("partition_spec = ") + text + ": must read like P('data', None)");
  }
}

TEST(PartitionSpec, BecomesPlacementsAndBack) {
  EXPECT_EQ(to_placements(P{{"data", "fsdp"}, {}}, kMesh, 2),
            (Placements{kShard0, kShard0, kWhole}));
  EXPECT_EQ(to_placements(P{{}, {"model"}}, kMesh, 2), (Placements{kWhole, kWhole, kShard1}));
  EXPECT_EQ(to_placements(P{}, kMesh, 0), replicated(kMesh));
  for (const P& spec :
       {P{{"data", "fsdp"}, {}}, P{{"model"}, {"data"}}, P{{}, {"data", "model"}}}) {
    EXPECT_EQ(to_partition_spec(to_placements(spec, kMesh, 2), kMesh, 2), spec);
  }
}

TEST(PartitionSpec, FollowsTheRules) {
  const auto reject = [](const P& spec, std::size_t tensor_rank) {
    return error_of([&] { to_placements(spec, kMesh, tensor_rank); });
  };
  EXPECT_EQ(reject(P{{"date"}}, 2),
            "partition_spec = P('date'): 'date' is not an axis of the mesh data=2,fsdp=2,model=3");
  EXPECT_EQ(reject(P{{"data"}, {"data"}}, 2),
            "partition_spec = P('data', 'data'): names the axis 'data' twice");
  EXPECT_EQ(
      reject(P{{"data"}, {}}, 1),
      "partition_spec = P('data', None): must be no longer than the 1 dimension of the tensor");
  EXPECT_NE(reject(P{{"data", "data"}}, 1), "");
  EXPECT_NE(reject(P{{"fsdp", "data"}}, 1).find("order of the mesh"), std::string::npos);
  EXPECT_NE(error_of([] {
              to_partition_spec({Placement::partial(), kWhole, kWhole}, kMesh, 1);
            }).find("Partial"),
            std::string::npos);
}

TEST(Placements, AreChecked) {
  EXPECT_NE(error_of([] { check_placements({kWhole}, kMesh, 1); }), "");
  EXPECT_NE(error_of([] { check_placements({kWhole, kShard1, kWhole}, kMesh, 1); }), "");
  EXPECT_EQ(to_string(Placements{kShard0, kWhole, Placement::partial()}, kMesh),
            "data: Shard(0), fsdp: Replicate, model: Partial");
}

TEST(LocalBlock, NestsTheLaterAxisInsideTheEarlier) {
  const MeshShape mesh = MeshShape::parse("a=2,b=2", 4);
  const auto rows = [&](Size n, Size rank) {
    const Block block = local_block({n, 3}, {kShard0, kShard0}, mesh, rank);
    EXPECT_EQ(block.extent[1], 3);
    return std::pair(block.offset[0], block.extent[0]);
  };
  // 7 rows: 4 and 3 on the outer axis, then 2+2 and 2+1.
  EXPECT_EQ(rows(7, 0), (std::pair<Size, Size>(0, 2)));
  EXPECT_EQ(rows(7, 1), (std::pair<Size, Size>(2, 2)));
  EXPECT_EQ(rows(7, 2), (std::pair<Size, Size>(4, 2)));
  EXPECT_EQ(rows(7, 3), (std::pair<Size, Size>(6, 1)));
  EXPECT_EQ(rows(1, 0), (std::pair<Size, Size>(0, 1)));
  EXPECT_EQ(rows(1, 3).second, 0);
}

TEST(LocalBlock, CoversEveryElementOncePerReplica) {
  for (const Shape& shape : {Shape{7, 5}, Shape{1, 13}, Shape{0, 4}, Shape{12, 3}}) {
    for (const auto& placements :
         {Placements{kShard0, kShard0, kShard0}, Placements{kShard1, kWhole, kShard0},
          Placements{kShard0, kShard1, kShard0}, Placements{kWhole, kWhole, kWhole}}) {
      Size replicas = 1;
      for (std::size_t a = 0; a < 3; ++a) {
        if (!placements[a].is_shard()) replicas *= kMesh.axes()[a].size;
      }
      std::vector<Size> held(static_cast<std::size_t>(num_elements(shape)), 0);
      for (Size rank = 0; rank < kMesh.num_ranks(); ++rank) {
        const Block block = local_block(shape, placements, kMesh, rank);
        for (Size i = 0; i < block.extent[0]; ++i) {
          for (Size j = 0; j < block.extent[1]; ++j) {
            ++held[static_cast<std::size_t>((block.offset[0] + i) * shape[1] + block.offset[1] +
                                            j)];
          }
        }
      }
      for (const Size count : held) EXPECT_EQ(count, replicas);
    }
  }
}

}  // namespace
}  // namespace tessera
