// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tessera/tensor/redistribute_plan.hpp>

#include "expect_error.hpp"
#include "tensor/placements.hpp"

namespace tessera {
namespace {

using namespace test::placements;

const MeshShape kLine = MeshShape::parse("data=4", 4);
const MeshShape kSquare = MeshShape::parse("data=2,model=2", 4);

/// "all_gather model 24, slice data" and so on.
std::string plan_text(const Shape& shape, const Placements& from, const Placements& to,
                      const MeshShape& mesh, Size rank = 0) {
  std::string text;
  for (const RedistributeStep& step : plan_redistribute(shape, from, to, mesh, rank)) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", name_of(step.transition), mesh.axes()[step.axis].name);
    if (is_collective(step.transition)) text += fmt::format(" {}", step.payload_elements);
  }
  return text;
}

TEST(RedistributePlan, TakesOneStepOnALine) {
  EXPECT_EQ(plan_text({6, 4}, {X}, {R}, kLine), "all_reduce data 24");
  EXPECT_EQ(plan_text({6, 4}, {X}, {S0}, kLine), "reduce_scatter data 24");
  EXPECT_EQ(plan_text({6, 4}, {S1}, {R}, kLine), "all_gather data 24");
  EXPECT_EQ(plan_text({6, 4}, {R}, {S1}, kLine), "slice data");
  EXPECT_EQ(plan_text({6, 4}, {S0}, {S1}, kLine), "all_to_all data 8");
  for (const Placement& p : {R, S0})
    EXPECT_EQ(
        test::error_of([=] {
          plan_text({6, 4}, {p}, {X}, kLine);
        }),
        fmt::format("a tensor with placements data: {} cannot become data: Partial", to_string(p)));
  for (const Placement& p : {R, S0, S1, X}) EXPECT_EQ(plan_text({6, 4}, {p}, {p}, kLine), "");
}

TEST(RedistributePlan, TakesNoStepOnAnAxisOfSizeOne) {
  const MeshShape mesh = MeshShape::parse("data=1,model=2", 2);
  EXPECT_EQ(plan_text({6, 4}, {S0, R}, {R, R}, mesh), "");
  EXPECT_EQ(plan_text({6, 4}, {X, X}, {R, R}, mesh), "all_reduce model 24");
  EXPECT_EQ(plan_text({6, 4}, {S0, S0}, {S1, R}, mesh), "all_gather model 24");
}

TEST(RedistributePlan, FindsTheOrderOfSeveralSteps) {
  // Payloads are the block of the group.
  EXPECT_EQ(plan_text({5, 4}, {S0, X}, {S0, R}, kSquare, 1), "all_reduce model 12");
  EXPECT_EQ(plan_text({5, 4}, {S0, X}, {S0, R}, kSquare, 2), "all_reduce model 8");
  // The outer axis cannot be gathered while the inner one splits its parts.
  EXPECT_EQ(plan_text({8, 4}, {S0, S0}, {R, S0}, kSquare),
            "all_gather model 16, all_gather data 32, slice model");
  EXPECT_EQ(plan_text({8, 4}, {R, R}, {S0, S0}, kSquare), "slice data, slice model");
  // An outer axis that shards the same dimension is not in the way.
  EXPECT_EQ(plan_text({8, 4}, {S0, S0}, {S0, S1}, kSquare), "all_to_all model 8");
  EXPECT_EQ(plan_text({8, 4}, {S0, S0}, {S1, S0}, kSquare),
            "all_gather model 16, all_to_all data 16, slice model");
  // Slices come before reductions, and reductions before gathers.
  EXPECT_EQ(plan_text({8, 4}, {R, X}, {S0, R}, kSquare), "slice data, all_reduce model 16");
  EXPECT_EQ(plan_text({8, 4}, {S0, X}, {R, R}, kSquare), "all_reduce model 16, all_gather data 32");
  EXPECT_EQ(plan_text({8, 4}, {X, S0}, {R, R}, kSquare), "all_reduce data 16, all_gather model 32");
  // The smaller axis gathers, although it is not the last, and the larger axis exchanges its
  // blocks. The other order sends half as much again, so no fixed order of the axes would do.
  EXPECT_EQ(plan_text({24, 48}, {S1, S0}, {S0, S1}, MeshShape::parse("data=2,model=3", 6)),
            "all_gather data 384, all_to_all model 384, slice data");
}

// Where the cut by the last axis is the outer one, the first axis moves first.
TEST(RedistributePlan, FollowsTheNestingOfTheCuts) {
  const auto last_axis_first = [](const Placements& placements) {
    Cuts cuts = cuts_of(placements);
    std::reverse(cuts.begin(), cuts.end());
    return cuts;
  };
  const auto first_axis = [&](const auto&... cuts) {
    return plan_redistribute({8, 4}, {S0, S0}, {R, R}, kSquare, 0, cuts...).front().axis;
  };
  EXPECT_EQ(first_axis(), 1u);
  EXPECT_EQ(first_axis(last_axis_first), 0u);
}

}  // namespace
}  // namespace tessera
