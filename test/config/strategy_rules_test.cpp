// SPDX-License-Identifier: Apache-2.0
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/plan_text.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

using config_test::expect_error;

/// The tutorial with this strategy, on this mesh unless it is empty.
Config on(const std::string& strategy, const std::string& mesh) {
  Config config = config_test::tutorial();
  DistributedConfig& distributed = config.training.distributed;
  distributed.strategy = value_named<Strategy>(strategy).value();
  if (mesh.empty()) return config;
  for (const Axis& axis : parse_axes(mesh)) {
    distributed.mesh_axis_names.push_back(axis.name);
    distributed.mesh_shape.push_back(axis.size);
  }
  return config;
}

/// Expects that `strategy` on `mesh` of `ranks` ranks is refused after `change`.
void refuse(
    const std::string& strategy, const std::string& mesh, Size ranks,
    const std::vector<std::string>& parts,
    const std::function<void(DistributedConfig&)>& change = [](auto&) {}) {
  Config config = on(strategy, mesh);
  change(config.training.distributed);
  SCOPED_TRACE(strategy + " on " + mesh);
  expect_error([&] { validate(config, ranks); }, parts);
}

const std::vector<std::string> all_strategies{"data", "zero1", "zero2", "fsdp", "hybrid", "tensor"};

TEST(StrategyRules, MeshesOfBatchStrategies) {
  for (const char* strategy : {"data", "zero1", "zero2", "fsdp"}) {
    EXPECT_EQ(resolve_mesh(on(strategy, ""), 6).to_string(), "data=6") << strategy;
    for (const char* mesh : {"data=6", "fsdp=6", "model=6", "fsdp=3,data=2", "data=-1,model=3"})
      validate(on(strategy, mesh), 6);
    Config sizes = on(strategy, "");
    sizes.training.distributed.tensor_parallel_size = 3;
    EXPECT_EQ(resolve_mesh(sizes, 6).to_string(), "data=2,model=3") << strategy;
  }
}

TEST(StrategyRules, MeshesOfHybrid) {
  for (const char* mesh : {"data=2,fsdp=3", "fsdp=6", "data=6,fsdp=1", "data=2,fsdp=1,model=3"})
    validate(on("hybrid", mesh), 6);
}

TEST(StrategyRules, MeshesOfTensor) {
  for (Size ranks : {1, 2, 6})
    EXPECT_EQ(resolve_mesh(on("tensor", ""), ranks).to_string(), "model=" + std::to_string(ranks));
  for (const char* mesh : {"model=6", "data=1,model=6", "model=-1,fsdp=1", "data=1,fsdp=1,model=6"})
    validate(on("tensor", mesh), 6);
  Config config = on("tensor", "");
  config.training.distributed.tensor_parallel_size = 6;
  EXPECT_EQ(resolve_mesh(config, 6).to_string(), "model=6");
  EXPECT_EQ(planned_ranks(config), 6);
}

TEST(StrategyRules, PipelineGoesWithAny) {
  for (const std::string& strategy : all_strategies) {
    validate(on(strategy, "pipeline=2,data=1,fsdp=1,model=2"), 4);
    validate(on(strategy, "model=2,fsdp=1,pipeline=2"), 4);
  }
  Config config = on("data", "");
  config.training.distributed.pipeline_parallel_size = 2;
  EXPECT_EQ(resolve_mesh(config, 6).to_string(), "pipeline=2,data=3");
  EXPECT_EQ(planned_ranks(config), 2);
}

TEST(StrategyRules, OptionsOfGatheringAreForThoseThatGather) {
  const std::vector<std::pair<std::string, std::function<void(DistributedConfig&)>>> options{
      {"distributed.prefetch", [](auto& d) { d.prefetch = false; }},
      {"distributed.reshard_after_forward", [](auto& d) { d.reshard_after_forward = false; }},
      {"distributed.keep_last_unit", [](auto& d) { d.keep_last_unit = false; }},
  };
  for (const auto& [key, change] : options) {
    for (const std::string& strategy : all_strategies) {
      const std::string mesh = "data=1,fsdp=1,model=4";
      if (strategy == "fsdp" || strategy == "hybrid") {
        Config config = on(strategy, mesh);
        change(config.training.distributed);
        validate(config, 4);
      } else {
        refuse(strategy, mesh, 4,
               {key + " = false: needs distributed.strategy = \"fsdp\" or \"hybrid\"",
                "and \"" + strategy + "\" does not"},
               change);
      }
    }
  }
}

// Strategies that gather parameters reduce unit by unit, and `tensor` reduces no gradients.
TEST(StrategyRules, BucketsAndOverlapAreForThoseThatReduceThem) {
  for (const std::string& strategy : all_strategies) {
    const std::string mesh = strategy == "tensor" ? "model=4" : "data=2,fsdp=2";
    const auto buckets = [](auto& d) { d.bucket_bytes = 300; };
    const auto overlap = [](auto& d) { d.overlap = true; };
    if (strategy == "data" || strategy == "zero1" || strategy == "zero2") {
      Config config = on(strategy, mesh);
      buckets(config.training.distributed);
      validate(config, 4);
    } else {
      refuse(strategy, mesh, 4,
             {"distributed.bucket_bytes = 300: must be 26214400", "\"" + strategy + "\""}, buckets);
    }
    if (strategy == "tensor") {
      refuse(strategy, mesh, 4,
             {"distributed.overlap = true: must be false", "does not split the batch"}, overlap);
    } else {
      Config config = on(strategy, mesh);
      overlap(config.training.distributed);
      validate(config, 4);
    }
  }
}

// One file serves all meshes: without an axis model, sequence parallelism changes nothing.
TEST(StrategyRules, SequenceParallelGoesWithEveryMesh) {
  for (const char* strategy : {"data", "zero1", "zero2", "fsdp", "hybrid"})
    for (const char* mesh : {"data=2,fsdp=2", "data=2,fsdp=2,model=1", "model=1,fsdp=4"}) {
      SCOPED_TRACE(std::string(strategy) + " on " + mesh);
      Config config = on(strategy, mesh);
      const MeshShape shape = resolve_mesh(config, 4);
      const nlohmann::json without =
          to_json(make_plan(plan_input(config, shape)), 4, PlanParts::all());
      config.training.distributed.sequence_parallel = true;
      validate(config, 4);
      EXPECT_EQ(to_json(make_plan(plan_input(config, shape)), 4, PlanParts::all()), without);
    }
  Config tensor = on("tensor", "");
  tensor.training.distributed.sequence_parallel = true;
  validate(tensor, 1);
}

}  // namespace
}  // namespace tessera
