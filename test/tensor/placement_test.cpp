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

}  // namespace
}  // namespace tessera
