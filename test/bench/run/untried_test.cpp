// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/predict/machine_file.hpp>
#include <tessera/predict/simulate.hpp>

#include "results/result_parts.hpp"
#include "run/reference_plan.hpp"

namespace tessera::bench {
namespace {

/// A pipeline that waits most of the time, so that other meshes are faster.
struct Pipelined : ::testing::Test {
  Pipelined() {
    study.base.model.mlp.widths = {256, 512, 512, 512, 1};
    study.grids = {{{"mesh", {"pipeline=4"}}, {"global_batch", {512}}}};
    cases = make_cases(study);
    SummaryRow row;
    row.result = new_result(study, cases.front());
    row.result.status = "ok";
    row.standing = "fastest";
    summary.cases = {row};
  }
  std::vector<Untried> search(const Machine* known) const {
    return untried(summary, cases, [&](const Case&) { return known; });
  }
  Study study;
  std::vector<Case> cases;
  Summary summary;
  Machine machine = load_machine(TESSERA_INPUTS "/machines/cpu_cluster.toml");
};

TEST_F(Pipelined, PredictionsOfDifferentMachinesAreNotCompared) {
  // An earlier launch has predicted the case, on a machine that is much faster.
  summary.cases.front().result.prediction.emplace().step_seconds = 1e-9;
  const Plan plan = plan_of(cases.front().config, 4);
  const std::vector<Untried> found = search(&machine);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].unknown, "");
  EXPECT_EQ(found[0].fastest_step_seconds, simulate(plan, cost_on(machine, plan)).step_seconds);
  EXPECT_LT(found[0].step_seconds, found[0].fastest_step_seconds / 1.03);
  EXPECT_TRUE(untried_text(found).starts_with("\nnot tried: ")) << untried_text(found);
}

TEST_F(Pipelined, TheReasonIsSaidIfNothingIsPredicted) {
  const auto expect_unknown = [&](const Machine* known, const std::string& reason) {
    const std::vector<Untried> found = search(known);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].fastest, cases.front().id);
    EXPECT_EQ(found[0].strategy, "");
    EXPECT_NE(untried_text(found).find(reason + "\n    " + cases.front().id), std::string::npos)
        << untried_text(found);
  };
  expect_unknown(nullptr, "no machine of this launch predicts it");
  Machine small = machine;
  small.network.resize(1);
  small.network[0].ranks = 2;
  EXPECT_NE(search(&small).at(0).unknown, "");
  summary.cases.front().result.prediction.emplace().oversubscribed = true;
  expect_unknown(&machine, "its ranks share processors");
}

}  // namespace
}  // namespace tessera::bench
