// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>

#include "measure/calibration.hpp"
#include "results/documents.hpp"
#include "run/explanation.hpp"

namespace tessera::bench {
namespace {

/// The tutorial's network under a strategy on its usual mesh of 4 ranks.
WorkOfCase tutorial(const std::string& strategy, Size batch = 32) {
  Study study;
  study.base.model.mlp.widths = {4, 64, 1};
  study.base.training.batch_size = batch;
  study.grids = {{{"strategy", {strategy}}, {"ranks", {4}}}};
  const Case point = make_cases(study).at(0);
  const Config config = resolve(point.config, 4);
  return {make_plan(plan_input(config, resolve_mesh(config, 4))), config.training};
}

/// Of a machine on which everything costs alpha + beta size.
constexpr double alpha = 1e-6, beta = 1e-9;

/// A calibration at two sizes of everything that a case does.
Calibration calibrated(const WorkOfCase& of) {
  Calibration calibration{4, {}, {1, 1, 1}, {}};
  for (const Action& action : of.plan.stages.front().actions)
    for (const Work& work : work_of(action, of.plan, work_sizes(of.plan, 0)))
      for (const Size size : {work.size / 2 + 1, 2 * work.size})
        calibration.curves[curve_name(work, of)].add(size,
                                                     {alpha + beta * static_cast<double>(size)});
  return calibration;
}

TEST(Curve, IsMadeOfStraightLines) {
  Curve curve;
  curve.add(100, {1, 0.5, 0.25});
  EXPECT_EQ(curve.at(100).seconds, 1);
  EXPECT_EQ(curve.at(50).seconds, 0.5) << "proportional to the size";
  EXPECT_EQ(curve.at(50).exposed, 0.125);
  curve.add(200, {3, 0.5, 0.25});
  curve.add(400, {4, 1, 0.25});
  EXPECT_DOUBLE_EQ(curve.at(150).seconds, 2);
  EXPECT_DOUBLE_EQ(curve.at(300).seconds, 3.5);
  EXPECT_DOUBLE_EQ(curve.at(300).lag, 0.75);
  EXPECT_DOUBLE_EQ(curve.at(600).seconds, 5);
  EXPECT_DOUBLE_EQ(curve.at(10).seconds, 0) << "never less";
  EXPECT_TRUE(curve.covers(198));
  EXPECT_FALSE(curve.covers(150));
}

TEST(Curve, FindsLatencyAndBandwidthOfACall) {
  Curve curve;
  for (const Size bytes : {1000, 64000})
    curve.add(bytes, {alpha + beta * static_cast<double>(bytes)});
  for (const Size bytes : {8, 1000, 5000, 1 << 20})
    EXPECT_NEAR(curve.at(bytes).seconds, alpha + beta * static_cast<double>(bytes), 1e-15);
}

TEST(Prediction, HoldsForSizesThatWereNotCalibrated) {
  for (const char* strategy : {"data", "zero1", "zero2", "fsdp", "hybrid", "tensor"}) {
    const Calibration calibration = calibrated(tutorial(strategy));
    const WorkOfCase larger = tutorial(strategy, 88);
    const SimulatedStep expected = simulate(larger.plan, [](const Work& work) {
      return Cost{alpha + beta * static_cast<double>(work.size)};
    });
    const SimulatedStep made = predict(larger, calibration, {1, 1, 1}, 1);
    EXPECT_NEAR(made.step_seconds, expected.step_seconds, 1e-12) << strategy;
    EXPECT_GT(made.step_seconds, 0);
  }
}

TEST(Prediction, FollowsTheSpeedOfTheMachine) {
  const WorkOfCase of = tutorial("data");
  const Calibration calibration = calibrated(of);
  const SimulatedStep then = predict(of, calibration, {1, 1, 1}, 1);
  const SimulatedStep now = predict(of, calibration, {1, 3, 2}, 1);
  EXPECT_DOUBLE_EQ(now.products, 2 * then.products) << "by the library's product";
  EXPECT_DOUBLE_EQ(now.update, 3 * then.update) << "by the memory";
  EXPECT_DOUBLE_EQ(now.communication(), 3 * then.communication());
}

TEST(Prediction, RanksThatShareAProcessorTakeTurns) {
  const WorkOfCase of = tutorial("data");
  const Calibration calibration = calibrated(of);
  const SimulatedStep alone = predict(of, calibration, {1, 1, 1}, 1);
  const SimulatedStep shared = predict(of, calibration, {1, 1, 1}, 2);
  const double before_the_call = alone.products + alone.kernels;
  EXPECT_DOUBLE_EQ(shared.products, alone.products);
  EXPECT_NEAR(shared.waiting() - alone.waiting(), before_the_call + alone.update, 1e-12);
}

TEST(Calibration, SurvivesItsFile) {
  const WorkOfCase of = tutorial("fsdp");
  Calibration calibration = calibrated(of);
  calibration.identity = {{"backend", "Serial"}};
  calibration.curves["a"].add(3, {1, 2, 3});
  const nlohmann::json json = calibration;
  const auto read = nlohmann::json::parse(json.dump()).get<Calibration>();
  EXPECT_EQ(nlohmann::json(read), json);
  EXPECT_EQ(read.curves.at("a").at(3).lag, 2);
  EXPECT_EQ(read.curves.at("a").at(3).exposed, 3);
}

TEST(Explanation, NamesTheLargestDifferenceFirst) {
  const WorkOfCase of = tutorial("data");
  const SimulatedStep step = predict(of, calibrated(of), {1, 1, 1}, 1);
  Breakdown measured;
  measured.products.mean_rank_seconds = step.products;
  measured.compute.mean_rank_seconds = step.products + step.kernels + 1e-6;
  measured.optimizer.mean_rank_seconds = step.update;
  measured.calls = {{"data", Operation::all_reduce, 1, step.communication() + 5e-6, 0}};
  const nlohmann::json parts = explanation_json(step, measured, of.plan);
  EXPECT_EQ(parts[0].at("part"), "all_reduce on data");
  EXPECT_EQ(parts[0].at("payload_bytes"), 1540);
  EXPECT_EQ(parts[0].at("calls"), 1);
  EXPECT_EQ(parts[1].at("part"), "kernels");
}

TEST(Documents, PartsOfMemoryAddUpToTheTotal) {
  for (const char* strategy : {"data", "zero1", "zero2", "fsdp", "hybrid", "tensor"}) {
    const auto document = memory_json(largest_memory(tutorial(strategy).plan).memory, Limits());
    Size sum = 0;
    for (const auto& [name, bytes] : document.at("parts").items()) sum += bytes.get<Size>();
    EXPECT_EQ(sum, document.at("planned_bytes")) << strategy;
  }
}

}  // namespace
}  // namespace tessera::bench
