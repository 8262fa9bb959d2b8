// SPDX-License-Identifier: Apache-2.0
#include "measure/calibrate.hpp"

#include <gtest/gtest.h>

#include <tessera/comm/share_json.hpp>
#include <tessera/config/to_plan_input.hpp>

namespace tessera::bench {
namespace {

WorkOfCase residual(const std::string& mesh, Size ranks, const std::string& strategy) {
  Config config;
  config.model.kind = ModelKind::residual_mlp;
  config.model.mlp.activation = Activation::gelu;
  config.model.residual_mlp.width = 13;
  config.model.residual_mlp.inner_width = 7;
  config.training.batch_size = 29;
  config.training.microbatches = 2;
  config.training.check_finite = true;
  config.training.clip.global_norm = 1;
  config.training.clip.value = 10;
  config.training.distributed.overlap = true;
  config.training.distributed.sequence_parallel = true;
  config.training.distributed.strategy = strategy;
  return {make_plan(plan_input(config, MeshShape::parse(mesh, ranks))), config.training};
}

// Whatever a plan has to do, odd sizes and empty shares included, can be timed by itself.
TEST(Calibrator, HasACostForEveryWorkOfEveryStrategy) {
  const Communicator world = Communicator::world();
  const Size n = world.size();
  const std::string all = std::to_string(n);
  std::vector<WorkOfCase> cases;
  for (const char* strategy : {"data", "zero1", "zero2", "fsdp"})
    cases.push_back(residual("data=" + all, n, strategy));
  cases.push_back(residual("model=" + all, n, "data"));
  if (n % 2 == 0) {
    const std::string half = std::to_string(n / 2);
    cases.push_back(residual("data=2,fsdp=" + half, n, "hybrid"));
    cases.push_back(residual("fsdp=" + half + ",model=2", n, "fsdp"));
  }
  const MachineProbe probe;
  Calibration calibration{n, {}, {}, {}};
  Calibrator calibrator(calibration, world, probe, cases);
  EXPECT_TRUE(calibrator.pass(calibration));
  for (const WorkOfCase& of : cases) {
    const SimulatedStep step = predict(of, calibration, calibration.machine, 1);
    EXPECT_GT(step.step_seconds, 0);
    EXPECT_GT(step.products, 0);
    EXPECT_EQ(step.communication() > 0, n > 1);
  }
  const nlohmann::json mine = calibration;
  for (const nlohmann::json& other : gather_json(world, mine)) EXPECT_EQ(other, mine);
  Calibrator again(calibration, world, probe, cases);
  EXPECT_FALSE(again.pass(calibration)) << "everything has been measured";
}

}  // namespace
}  // namespace tessera::bench
