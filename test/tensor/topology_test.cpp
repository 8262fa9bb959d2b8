// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/tensor/mesh_layout.hpp>
#include <tessera/tensor/mesh_shape.hpp>
#include <tessera/tensor/topology.hpp>

namespace tessera {
namespace {

using Ranks = std::vector<Size>;

std::string mesh_on(const char* mesh, const Topology& topology) {
  try {
    return MeshShape::parse(mesh, topology).to_string();
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(Topology, CountsRanksOfNodesInTheOrderOfTheirLowestRanks) {
  const Topology topology(Ranks{7, 7, 3, 7, 3});
  EXPECT_EQ(topology.ranks(), 5);
  EXPECT_EQ(topology.ranks_by_node(), (Ranks{3, 2}));
  EXPECT_EQ(topology.per_node(), std::nullopt);
  EXPECT_EQ(topology.of(4).ranks_by_node(), (Ranks{3, 1}));
  EXPECT_FALSE(topology.of(6).is_known());
  EXPECT_EQ(Topology::blocks(4, 2).of(6).ranks_by_node(), (Ranks{2, 2, 2}));
  EXPECT_EQ(nodes_text(topology), "2 with 2-3 ranks each");
  EXPECT_EQ(nodes_text(Topology::blocks(8, 4)), "2 with 4 ranks each");
  EXPECT_EQ(nodes_text(Topology::blocks(4, 4)), "1 with 4 ranks");
  EXPECT_EQ(nodes_text(Topology::blocks(2, 1)), "2 with 1 rank each");
  EXPECT_EQ(nodes_text(8), "not known");
}

TEST(Topology, TellsWhichAxesCrossNodes) {
  const MeshShape mesh = MeshShape::parse("data=2,fsdp=2,model=2", 8);
  const Topology fours = Topology::blocks(8, 4);
  EXPECT_FALSE(fours.stays_inside(mesh, "data"));
  EXPECT_TRUE(fours.stays_inside(mesh, "fsdp"));
  EXPECT_TRUE(fours.stays_inside(mesh, "fsdp+model"));
  EXPECT_FALSE(fours.stays_inside(mesh, "data+model"));
  EXPECT_EQ(nodes_line(fours, mesh),
            "Nodes: 2 with 4 ranks each; fsdp, model stay inside a node, data crosses nodes\n");
  const MeshShape in_pairs = MeshShape({{"model", 4}, {"data", 2}}).with_repeats("model", 2);
  EXPECT_TRUE(fours.stays_inside(in_pairs, "data+repeats"));
  EXPECT_FALSE(fours.stays_inside(in_pairs, "model"));
  // Ranks alternate between the nodes.
  const Topology turns(Ranks{0, 1, 0, 1, 0, 1, 0, 1});
  EXPECT_TRUE(turns.stays_inside(mesh, "data+fsdp"));
  EXPECT_FALSE(turns.stays_inside(mesh, "model"));
  // One group crosses nodes.
  EXPECT_FALSE(Topology(Ranks{0, 0, 0, 0, 0, 0, 0, 1}).stays_inside(mesh, "model"));
  EXPECT_EQ(nodes_line(8, mesh), "");
}

// blocks() gives the same answers as the list of its nodes.
TEST(Topology, BlocksAreAsTheListOfTheirRanks) {
  for (const char* text :
       {"data=2,fsdp=3,model=2", "data=12", "data=1,model=12", "fsdp=6,data=2"}) {
    const MeshShape mesh = MeshShape::parse(text, 12);
    for (Size per_node = 1; per_node <= 13; ++per_node) {
      Ranks nodes;
      for (Size rank = 0; rank < 12; ++rank) nodes.push_back(rank / per_node);
      const Topology listed(nodes), blocks = Topology::blocks(12, per_node);
      EXPECT_EQ(blocks.ranks_by_node(), listed.ranks_by_node());
      EXPECT_EQ(blocks.num_nodes(), listed.num_nodes());
      EXPECT_EQ(blocks.per_node(), listed.per_node());
      EXPECT_EQ(nodes_text(blocks), nodes_text(listed));
      EXPECT_EQ(blocks.of(7).ranks_by_node(), listed.of(7).ranks_by_node());
      for (const Axis& axis : mesh.axes())
        EXPECT_EQ(blocks.stays_inside(mesh, axis.name), listed.stays_inside(mesh, axis.name))
            << text << ", " << axis.name << ", " << per_node;
    }
  }
  EXPECT_EQ(Topology::blocks(most_ranks, 2).num_nodes(), (most_ranks + 1) / 2);
}

TEST(Topology, LeavesAxesOfSizeOneOut) {
  const MeshShape mesh = MeshShape::parse("data=1,model=4", 4);
  const nlohmann::json json = nodes_json(Topology::blocks(4, 2), mesh);
  EXPECT_EQ(json, nlohmann::json::parse(
                      R"({"count": 2, "ranks_each": "2", "inside": [], "across": ["model"]})"));
  EXPECT_EQ(nodes_json(4, mesh), nullptr);
}

TEST(MeshShape, TakesSizesFromTheNodes) {
  const Topology twelve = Topology::blocks(12, 4), uneven(Ranks{0, 0, 0, 1});
  EXPECT_EQ(mesh_on("data=nodes,fsdp=per_node", twelve), "data=3,fsdp=4");
  EXPECT_EQ(mesh_on("data=-1,model=per_node", twelve), "data=3,model=4");
  EXPECT_EQ(mesh_on("pipeline=nodes,data=-1,model=2", twelve), "pipeline=3,data=2,model=2");
  EXPECT_EQ(mesh_on("data=nodes,fsdp=-1", uneven), "data=2,fsdp=2");
  for (const auto& [mesh, topology, reason] :
       {std::tuple("data=nodes,fsdp=2", twelve, "multiply to 6"),
        {"data=per_nodes", twelve, "nodes or per_node"},
        {"data=nodes", Topology(4), "known only in a launch"},
        {"fsdp=per_node", uneven, "2 with 1-3 ranks each"}})
    EXPECT_NE(mesh_on(mesh, topology).find(reason), std::string::npos) << mesh;
}

}  // namespace
}  // namespace tessera
