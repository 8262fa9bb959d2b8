// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/tensor/rules.hpp>

#include "expect_error.hpp"

namespace tessera {
namespace {

using P = PartitionSpec;

PartitionSpec spec_for(const std::vector<std::string>& names, const char* mesh,
                       const MeshRules& rules = default_rules()) {
  return partition_spec_for_names(names, rules, MeshShape(parse_axes(mesh)));
}

TEST(MeshRules, GiveTheAxesOfTheMeshToDimensions) {
  constexpr const char* mesh = "data=2,fsdp=2,model=2";
  EXPECT_EQ(spec_for({"embed", "mlp"}, mesh), (P{{}, {"model"}}));
  EXPECT_EQ(spec_for({"mlp", "embed"}, mesh), (P{{"model"}, {}}));
  EXPECT_EQ(spec_for({"batch", "embed"}, mesh), (P{{"data", "fsdp"}, {}}));
  EXPECT_EQ(spec_for({"", "mlp"}, mesh), (P{{}, {"model"}}));
  // Axes that the mesh lacks are left out, and the others have its order.
  EXPECT_EQ(spec_for({"batch", "mlp"}, "data=2"), (P{{"data"}, {}}));
  EXPECT_EQ(spec_for({"batch", "mlp"}, "pipeline=2"), (P{{}, {}}));
  EXPECT_EQ(spec_for({"batch", "mlp"}, "fsdp=2,data=2"), (P{{"fsdp", "data"}, {}}));
  // The first dimension that asks for an axis gets it.
  EXPECT_EQ(spec_for({"mlp", "mlp"}, mesh), (P{{"model"}, {}}));
  MeshRules rules = default_rules();
  rules["embed"] = {"data", "model"};
  EXPECT_EQ(spec_for({"mlp", "embed"}, mesh, rules), (P{{"model"}, {"data"}}));
}

TEST(MeshRules, RejectUnknownNames) {
  EXPECT_EQ(test::error_of([] { spec_for({"embde"}, "data=2"); }),
            "logical axis = embde: must be one of batch, embed, experts, heads, mlp, modes, vocab "
            "(nearest: embed)");
}

}  // namespace
}  // namespace tessera
