// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>

#include "measure/calibration.hpp"
#include "results/documents.hpp"

namespace tessera::bench {
namespace {

/// The tutorial's network under a strategy on its usual mesh of 4 ranks.
Plan tutorial(const std::string& strategy) {
  Study study;
  study.base.model.mlp.widths = {4, 64, 1};
  study.base.training.batch_size = 32;
  study.grids = {{{"strategy", {strategy}}, {"ranks", {4}}}};
  const Case point = make_cases(study).at(0);
  const Config config = resolve(point.config, 4);
  return make_plan(plan_input(config, resolve_mesh(config, 4)));
}

TEST(Prediction, IsFlopsAtThePeakAndCallsInTheRingModel) {
  Calibration calibration;
  calibration.ranks = 4;
  calibration.gemm_flops_per_second = 1e6;
  calibration.alpha = 1e-3;
  calibration.beta = 1e-6;
  const Prediction made = predict(tutorial("data"), calibration);
  // Forward 2 * 32 * (4 * 64 + 64 * 1), backward twice that without the gradient of the input.
  EXPECT_DOUBLE_EQ(made.compute_seconds, (3 * 20480 - 16384) / (4 * 1e6));
  // One all-reduce of 385 floats: 6 rounds, and 3/2 of its bytes on the wire.
  EXPECT_DOUBLE_EQ(made.communication_seconds, 6e-3 + 1.5 * 1540 * 1e-6);
  EXPECT_DOUBLE_EQ(made.step_seconds, made.compute_seconds + made.communication_seconds);
}

TEST(Documents, PartsOfMemoryAddUpToTheTotal) {
  for (const char* strategy : {"data", "zero1", "zero2", "fsdp", "hybrid", "tensor"}) {
    const auto document = memory_json(largest_memory(tutorial(strategy)).memory, Limits());
    Size sum = 0;
    for (const auto& [name, bytes] : document.at("parts").items()) sum += bytes.get<Size>();
    EXPECT_EQ(sum, document.at("planned_bytes")) << strategy;
  }
}

}  // namespace
}  // namespace tessera::bench
