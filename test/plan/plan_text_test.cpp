// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/timer.hpp>
#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/plan/plan_text.hpp>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using nlohmann::json;
using plan_test::tutorial;

std::string all_of(const Plan& plan, const Topology& topology = 0) {
  return to_text(plan, topology, PlanParts::all());
}

/// Expects a line of `text` that has all of `pieces`, in this order.
void expect_line(const std::string& text, const std::vector<std::string>& pieces) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::size_t at = begin;
    bool all = true;
    for (const std::string& piece : pieces) {
      at = text.find(piece, at);
      all = all && at != std::string::npos && at + piece.size() <= end;
      if (!all) break;
      at += piece.size();
    }
    if (all) return;
    begin = end + 1;
  }
  ADD_FAILURE() << "no line with " << testing::PrintToString(pieces) << " in\n" << text;
}

const json* find_tensor(const json& plan, const std::string& path) {
  for (const json& tensor : plan["tensors"])
    if (tensor["path"] == path) return &tensor;
  return nullptr;
}

TEST(PlanText, MarksTheCallsThatLeaveANode) {
  const Plan plan = make_plan(tutorial({{"data", 2}, {"model", 2}}));
  const std::string text = all_of(plan, Topology::blocks(4, 2));
  expect_line(text, {"Nodes: 2 with 2 ranks each; model stays inside a node, data crosses nodes"});
  expect_line(text, {"per step", "data", "all_reduce", "gradients, across nodes"});
  const json document = to_json(plan, Topology::blocks(4, 2), PlanParts::all());
  for (const json& call : document["collectives"])
    EXPECT_EQ(call["across_nodes"], call["axis"] != "model") << call;
  EXPECT_EQ(all_of(plan).find("across nodes"), std::string::npos);
}

TEST(PlanText, ShowsTheMeshAsAGridOfRanks) {
  const std::string text = to_text(make_plan(tutorial({{"data", 3}})));
  expect_line(text, {"Mesh data=3", "3 ranks", "strategy data"});
  expect_line(text, {"data |", "0", "1", "2"});
  expect_line(text, {"rank |", "0", "1", "2"});
  const std::string grid = to_text(make_plan(tutorial({{"data", 2}, {"model", 2}})));
  expect_line(grid, {"0 |", "0", "1"});
  expect_line(grid, {"1 |", "2", "3"});
}

TEST(PlanText, ShowsEveryTensorWithItsLocalShapes) {
  const std::string text = all_of(make_plan(tutorial({{"data", 3}})));
  expect_line(
      text, {"batch/x", "(32, 4)", "P('data', None)", "(11, 4) on ranks 0-1", "(10, 4) on rank 2"});
  expect_line(text, {"activation", "layer1/output", "(32, 64)", "P('data', None)", "(11, 64)"});
  expect_line(text, {"parameter", "layer1/kernel", "(4, 64)", "(4, 64) on every rank"});
  expect_line(text, {"gradient", "layer2/bias.gradient", "(1,)", "(1,) on every rank"});
  expect_line(text, {"moment", "layer2/kernel.moment2", "(64, 1)", "on every rank"});
}

TEST(PlanText, ShowsMemoryOfTheRanksThatNeedMost) {
  const std::string text = to_text(make_plan(tutorial({{"data", 3}})));
  expect_line(text, {"ranks 0-1 need most:", "13.35 KiB"});
  expect_line(text, {"the other ranks:", "13.20 KiB or more"});
  for (const char* line : {"parameters", "gradients"}) expect_line(text, {line, "1,544 B"});
  expect_line(text, {"moments", "3,080 B"});
  expect_line(text, {"activations", "5,680 B"});
  expect_line(text, {"data", "1,760 B"});
  expect_line(to_text(make_plan(tutorial({{"data", 2}}))), {"every rank:", "KiB"});
}

// Ranks whose shares hold other parts of the gradients that are summed over `model`.
TEST(PlanText, RanksWithOtherCallsAndEqualMemoryShareAnEntry) {
  PlanInput input = tutorial({{"fsdp", 2}, {"model", 2}});
  input.model = transformer({.blocks = 2});
  input.loss = LossKind::cross_entropy;
  input.strategy = Strategy::zero1;
  input.sequence_parallel = true;
  const Plan plan = make_plan(input);
  EXPECT_GT(group_alike(plan).groups.size(), 1u);
  EXPECT_EQ(to_json(plan)["memory"].size(), 1u);
  expect_line(to_text(plan), {"every rank:", "iB"});
}

// Only the parts that are asked for grow with the number of layers.
TEST(PlanText, IsOneScreenForALargeModel) {
  PlanInput input = tutorial({{"pipeline", 2}, {"fsdp", 3}, {"model", 2}});
  input.model = transformer({.blocks = 24});
  input.loss = LossKind::cross_entropy;
  input.strategy = Strategy::fsdp;
  input.microbatches = 4;
  const Plan plan = make_plan(input);
  const std::string text = to_text(plan);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 50) << text;
  expect_line(text, {std::string("1,209,984 parameters")});
  for (const LedgerRow& row : step_traffic(plan))
    expect_line(text, {row.axis, std::string(name_of(row.operation)), "call"});
  EXPECT_EQ(text.find("PartitionSpec"), std::string::npos);
  EXPECT_EQ(text.find("Schedule"), std::string::npos);
  EXPECT_LT(to_json(plan).dump().size(), 5'000U);

  // Equal blocks share a line.
  const std::string tensors = to_text(plan, 0, {.tensors = true});
  expect_line(tensors, {"parameter", "block{1-12}/fc1/kernel", "(64, 256)"});
  EXPECT_LE(std::count(tensors.begin(), tensors.end(), '\n'), 250) << tensors;
  const std::string schedule = to_text(plan, 0, {.schedule = true});
  EXPECT_NE(schedule.find("x [forward(block"), std::string::npos) << schedule;
  EXPECT_LE(std::count(schedule.begin(), schedule.end(), '\n'), 400) << schedule;
}

TEST(PlanText, ShowsCollectivesScheduleAndWork) {
  PlanInput input = tutorial({{"data", 3}});
  input.bucket_bytes = 300;
  const std::string text = all_of(make_plan(input));
  expect_line(text, {"per step", "data", "all_reduce", "2 calls", "1,540 B", "gradients"});
  expect_line(text, {"per epoch", "data", "all_reduce", "1 call ", "64 B", "loss sums"});
  expect_line(text, {"backward(layer2/output) backward(layer2/product)"});
  expect_line(text, {"Steps per epoch: 8"});
  expect_line(text, {"FLOPs", "45,056", "20,480", "24,576"});
  expect_line(to_text(make_plan(tutorial({{"data", 1}}))), {"none"});
}

TEST(PlanJson, HasTheFieldsOfTheText) {
  PlanInput input = tutorial({{"data", 3}});
  input.bucket_bytes = 300;
  const json plan = to_json(make_plan(input), 0, PlanParts::all());
  EXPECT_EQ(plan["mesh"]["shape"], json({3}));
  EXPECT_EQ(plan["mesh"]["axis_names"], json({"data"}));
  EXPECT_EQ(plan["num_ranks"], 3);
  EXPECT_EQ(plan["strategy"], "data");
  EXPECT_EQ(plan["dtype"], "float32");
  EXPECT_EQ(plan["parameters"], 385);
  EXPECT_EQ(plan["steps_per_epoch"], 8);
  EXPECT_EQ(plan["traffic_of_rank_0"], json::parse(R"([
    {"axis": "data", "operation": "all_reduce", "calls": 2, "payload_bytes": 1540}])"));
  EXPECT_EQ(plan["flops"], (json{{"forward", 20480}, {"backward", 24576}, {"recomputed", 0}}));

  const json* x = find_tensor(plan, "batch/x");
  ASSERT_NE(x, nullptr);
  EXPECT_EQ((*x)["shape"], json({32, 4}));
  EXPECT_EQ((*x)["spec"], "P('data', None)");
  EXPECT_EQ((*x)["local"], json::parse(R"([{"shape": [11, 4], "ranks": "0-1"},
                                           {"shape": [10, 4], "ranks": "2"}])"));
  ASSERT_NE(find_tensor(plan, "layer2/kernel.moment2"), nullptr);

  ASSERT_EQ(plan["memory"].size(), 2u);
  EXPECT_EQ(plan["memory"][0]["ranks"], "0-1");
  EXPECT_EQ(plan["memory"][0]["bytes"]["total"], 13672);
  EXPECT_EQ(plan["memory"][1]["ranks"], "2");
  EXPECT_EQ(plan["memory"][1]["bytes"]["activations"], 5680);

  EXPECT_EQ(plan["collectives"], json::parse(R"([
    {"ranks": "0-2", "axis": "data", "operation": "all_reduce", "calls": 2, "payload_bytes": 1540,
     "cadence": "step", "what": "gradients"},
    {"ranks": "0-2", "axis": "data", "operation": "all_reduce", "calls": 1, "payload_bytes": 64,
     "cadence": "epoch", "what": "loss sums"},
    {"ranks": "0-2", "axis": "data", "operation": "all_reduce", "calls": 1, "payload_bytes": 24,
     "cadence": "report", "what": "loss and norm"}])"));
  ASSERT_EQ(plan["actions"].size(), 12u);
  EXPECT_EQ(plan["actions"][5], (json{{"kind", "backward"},
                                      {"text", "backward(layer2/output)"},
                                      {"stage", 0},
                                      {"microbatch", 0}}));
}

// A login node can plan for a large machine. The time is printed, not asserted.
TEST(PlanText, HundredThousandRanks) {
  PlanInput input = tutorial({{"data", 100000}});
  input.model = mlp({.widths = {1024, 4096, 4096, 4096, 1024}});
  input.batch_size = 1234567;
  input.samples = 50000000;
  input.microbatches = 3;
  const Timer timer;
  const Plan plan = make_plan(input);
  const std::string text = all_of(plan);
  const json document = to_json(plan, 0, PlanParts::all());
  std::printf("planned and wrote 100,000 ranks in %.2f s\n", timer.seconds());
  EXPECT_LT(text.size(), 20000u);
  expect_line(text, {"batch/x", "(5, 1024) on ranks 0-34566", "(4, 1024) on ranks 34567-99999"});
  EXPECT_EQ(document["num_ranks"], 100000);
}

}  // namespace
}  // namespace tessera
