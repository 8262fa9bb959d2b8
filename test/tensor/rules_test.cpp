// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/tensor/rules.hpp>

#include "expect_error.hpp"

namespace tessera {
namespace {

using test::error_of;
using P = PartitionSpec;

PartitionSpec spec_for(const std::vector<std::string>& names, const MeshRules& rules) {
  return partition_spec_for_names(names, rules, MeshShape::parse("data=2,fsdp=2,model=2", 8));
}

TEST(MeshRules, MakeColumnAndRowLayersFromOneRule) {
  const MeshRules rules = default_rules();
  EXPECT_EQ(spec_for({"embed", "mlp"}, rules), (P{{}, {"model"}}));
  EXPECT_EQ(spec_for({"mlp", "embed"}, rules), (P{{"model"}, {}}));
  EXPECT_EQ(spec_for({"batch", "embed"}, rules), (P{{"data", "fsdp"}, {}}));
  EXPECT_EQ(spec_for({"", "mlp"}, rules), (P{{}, {"model"}}));
}

TEST(MeshRules, LeaveOutAxesThatTheMeshLacks) {
  const auto spec = [](const char* mesh, Size ranks) {
    return partition_spec_for_names({"batch", "mlp"}, default_rules(),
                                    MeshShape::parse(mesh, ranks));
  };
  EXPECT_EQ(spec("data=2", 2), (P{{"data"}, {}}));
  EXPECT_EQ(spec("fsdp=2,model=2", 4), (P{{"fsdp"}, {"model"}}));
  EXPECT_EQ(spec("pipeline=2", 2), (P{{}, {}}));
  EXPECT_EQ(spec("fsdp=2,data=2", 4), (P{{"fsdp", "data"}, {}}));
}

TEST(MeshRules, GiveAnAxisToTheFirstDimensionThatAsks) {
  EXPECT_EQ(spec_for({"mlp", "mlp"}, default_rules()), (P{{"model"}, {}}));
  MeshRules rules = default_rules();
  rules["embed"] = {"data", "model"};
  EXPECT_EQ(spec_for({"mlp", "embed"}, rules), (P{{"model"}, {"data"}}));
}

TEST(MeshRules, RejectUnknownNames) {
  EXPECT_EQ(error_of([] { spec_for({"embde"}, default_rules()); }),
            "logical axis = embde: must be one of batch, embed, experts, heads, mlp, modes, vocab "
            "(nearest: "
            "embed)");
}

}  // namespace
}  // namespace tessera
