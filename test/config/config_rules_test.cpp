// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include <tessera/config/config_rules.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/io/hdf5_array.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

using config_test::refuse;
using config_test::tutorial;

TEST(ConfigRules, AcceptTheTutorialOnAnyNumberOfRanks) {
  Config config = tutorial();
  for (Size ranks : {1, 2, 3, 7, 64, 100000}) validate(config, ranks);
  config.training.distributed.gradient_reduce_type = GradientReduceType::sum;
  validate(config, 4);
  config.model = {.kind = ModelKind::residual_mlp};
  validate(config, 4);
}

TEST(ConfigRules, Sizes) {
  for (const char* key :
       {"training.num_epochs", "training.batch_size", "training.microbatches",
        "training.validate_every", "data.samples", "distributed.bucket_bytes",
        "distributed.world_size", "distributed.threads", "distributed.num_nodes",
        "distributed.num_processes_per_node", "distributed.tensor_parallel_size",
        "distributed.pipeline_parallel_size", "distributed.virtual_stages", "model.vae.latent"})
    for (const Size bad : {Size{0}, Size{-1}, std::numeric_limits<Size>::min()})
      refuse([&](Config& c) { set(c, key, bad); },
             {fmt::format("{} = {}: must be positive", key, bad)});
  for (const char* key : {"training.check_replicas_every", "training.patience",
                          "data.validation_samples", "checkpoint.every_steps", "checkpoint.keep"})
    refuse([&](Config& c) { set(c, key, -1); },
           {fmt::format("{} = -1: must not be negative", key)});
}

/// Values that a file cannot give.
TEST(ConfigRules, NumbersThatAreNoEnumerators) {
  refuse([](Config& c) { c.training.distributed.strategy = static_cast<Strategy>(9); },
         {"distributed.strategy = 9: must be one of data"});
  refuse([](Config& c) { c.model.dtype = DType::int32; },
         {"model.dtype", "must be one of float32, float64"});
  refuse([](Config& c) { c.model.mlp.activation = static_cast<Activation>(99); },
         {"model.activation = 99", "must be one of identity, relu, tanh, sigmoid, gelu"});
  refuse([](Config& c) { c.model.mlp.seed = static_cast<std::uint64_t>(-1); },
         {"model.seed", "2^63 - 1"});
}

TEST(ConfigRules, PlansNeedNoFiles) {
  Config config = tutorial();
  config.data = {.kind = DataKind::npy, .x = "/nowhere/x.npy", .y = "/nowhere/y.npy"};
  validate(config, 4);
  config.data = {.kind = DataKind::hdf5, .file = "/nowhere/f.h5", .x = "x", .y = "y"};
  if (has_hdf5()) return validate(config, 4);
  refuse([&](Config& c) { c.data = config.data; },
         {"data.kind = \"hdf5\": needs a program that was built with HDF5"});
}

TEST(ConfigRules, CheckpointsNeedADirectory) {
  const std::vector<std::pair<const char*, nlohmann::json>> given{
      {"every_steps", 5}, {"every_minutes", 0.5}, {"at_end", false},         {"keep", 0},
      {"keep_best", 1},   {"async", true},        {"on_failure", "continue"}};
  for (const auto& [name, value] : given) {
    const std::string key = std::string("checkpoint.") + name;
    refuse([&](Config& c) { set(c, key, value); },
           {fmt::format("{} = {}: needs checkpoint.directory", key, value.dump())});
  }
  refuse([](Config& c) { c.checkpoint = {.directory = "saves", .keep = 0, .keep_best = 1}; },
         {"checkpoint.keep_best = 1: needs checkpoint.keep > 0"});
  Config config = tutorial();
  config.checkpoint = {.directory = "saves", .every_steps = 5, .keep_best = 1};
  validate(config, 4);
  config.checkpoint = {.init_from = "model.safetensors"};
  validate(config, 4);
}

}  // namespace
}  // namespace tessera
