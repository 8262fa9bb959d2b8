// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/tensor/partition_spec.hpp>

#include "expect_error.hpp"
#include "tensor/placements.hpp"

namespace tessera {
namespace {

using namespace test::placements;
using test::error_of;
using P = PartitionSpec;

const MeshShape kMesh = MeshShape::parse("data=2,fsdp=2,model=3", 12);

TEST(PartitionSpec, ReadsAndWritesJaxSpelling) {
  EXPECT_EQ(P::parse("PartitionSpec((\"data\", 'fsdp'), None,)"), (P{{"data", "fsdp"}, {}}));
  EXPECT_EQ(P::parse(" P( ) "), P());
  EXPECT_EQ(P::parse("P(('model',))"), (P{{"model"}}));
  for (const char* text : {"P()", "P(None)", "P('data', None)", "P(('data', 'fsdp'), 'model')"})
    EXPECT_EQ(P::parse(text).to_string(), text);
  for (const char* text : {"", "P", "P(", "P('data'", "P(data)", "P('data)", "P('') ", "P('a' 'b')",
                           "P('a'))", "Q('a')", "P(,)", "P(None None)"})
    EXPECT_EQ(error_of([=] { P::parse(text); }),
              std::string("partition_spec = ") + text + ": must read like P('data', None)");
}

TEST(PartitionSpec, BecomesPlacementsAndBack) {
  EXPECT_EQ(to_placements(P{{"data", "fsdp"}, {}}, kMesh, 2), (Placements{S0, S0, R}));
  EXPECT_EQ(to_placements(P{{}, {"model"}}, kMesh, 2), (Placements{R, R, S1}));
  EXPECT_EQ(to_placements(P{}, kMesh, 0), replicated(kMesh));
  for (const P& spec : {P{{"data", "fsdp"}, {}}, P{{"model"}, {"data"}}, P{{}, {"data", "model"}}})
    EXPECT_EQ(to_partition_spec(to_placements(spec, kMesh, 2), kMesh, 2), spec);
  EXPECT_NE(error_of([] {
              to_partition_spec({X, R, R}, kMesh, 1);
            }).find("Partial"),
            std::string::npos);
}

TEST(PartitionSpec, FollowsTheRules) {
  struct Rejected {
    P spec;
    std::string message;
  };
  for (const auto& [spec, message] :
       {Rejected{{{"date"}}, "P('date'): 'date' is not an axis of the mesh data=2,fsdp=2,model=3"},
        {{{"data"}, {"data"}}, "P('data', 'data'): names the axis 'data' twice"},
        {{{"data", "data"}}, "P(('data', 'data')): names the axis 'data' twice"},
        {{{"fsdp", "data"}},
         "P(('fsdp', 'data')): the axes of one dimension must be in the order of the mesh "
         "data=2,fsdp=2,model=3"},
        {{{"data"}, {}, {}},
         "P('data', None, None): must be no longer than the 2 dimensions of the tensor"}})
    EXPECT_EQ(error_of([s = spec] { to_placements(s, kMesh, 2); }), "partition_spec = " + message);
}

TEST(Placements, AreChecked) {
  EXPECT_NE(error_of([] { check_placements({R}, kMesh, 1); }), "");
  EXPECT_NE(error_of([] { check_placements({R, S1, R}, kMesh, 1); }), "");
  EXPECT_EQ(to_string(Placements{S0, R, X}, kMesh),
            "data: Shard(0), fsdp: Replicate, model: Partial");
}

}  // namespace
}  // namespace tessera
