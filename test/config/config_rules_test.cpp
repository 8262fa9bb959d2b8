// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include <tessera/config/config_rules.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/io/hdf5_file.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

using config_test::expect_error;
using config_test::load_text;
using config_test::refuse;
using config_test::refuse_distributed;
using config_test::tutorial;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(ConfigRules, TutorialIsValidOnAnyNumberOfRanks) {
  for (Size ranks : {1, 2, 3, 7, 64, 100000}) validate(tutorial(), ranks);
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
  for (const char* key : {"training.check_replicas_every", "data.validation_samples",
                          "checkpoint.every_steps", "checkpoint.keep"})
    refuse([&](Config& c) { set(c, key, -1); },
           {fmt::format("{} = -1: must not be negative", key)});
  refuse(
      [&](Config& c) {
        c.model.mlp.widths = {4, 0, 1};
      },
      {"model.widths = [4, 0, 1]", "must all be positive"});
  refuse([](Config& c) { c.training.validate_every = 2; },
         {"training.validate_every = 2: needs data.validation_samples"});
}

TEST(ConfigRules, LearningRateAndTimeout) {
  for (double bad : {-1e-3, nan, infinity, -infinity}) {
    refuse([&](Config& c) { c.training.learning_rate = bad; },
           {"training.learning_rate = ", "must be finite and not negative"});
    refuse([&](Config& c) { c.comm.timeout_seconds = bad; },
           {"comm.timeout_seconds = ", "must be from 0 (never) to 1e9 seconds"});
  }
  refuse([](Config& c) { c.training.learning_rate = nan; }, {"training.learning_rate = nan"});
  refuse([](Config& c) { c.comm.timeout_seconds = 2e9; },
         {"comm.timeout_seconds = 2", "must be from 0 (never) to 1e9 seconds"});
}

TEST(ConfigRules, KindsOfModelsHaveTheirOwnKeys) {
  Config config = tutorial();
  config.model.kind = ModelKind::residual_mlp;
  expect_error(
      [&] { validate(config, 1); },
      {"model.kind = \"residual_mlp\": must be \"mlp\" if keys such as model.widths are given"});
  config.model.mlp.widths.clear();
  validate(config, 4);
  config.model.residual_mlp.output_width = 2;
  expect_error([&] { validate(config, 1); },
               {"data.kind = \"sum_of_squares\": needs a model", "output width of 1"});
  config.model.residual_mlp = {.width = Size{1} << 31, .inner_width = Size{1} << 31};
  expect_error([&] { validate(config, 1); },
               {"model.residual_mlp.width = 2147483648", "than memory can address"});
  expect_error(
      [] { load_text("[model]\nkind = \"residual_mlp\"\n[model.residual_mlp]\nwidht = 3"); },
      {"model.residual_mlp.widht", "did you mean model.residual_mlp.width?"});
}

TEST(ConfigRules, Model) {
  refuse([](Config& c) { c.model.mlp.widths = {}; }, {"model.widths = []"});
  refuse([](Config& c) { c.model.mlp.widths = {4}; }, {"model.widths = [4]", "at least an input"});
  refuse(
      [](Config& c) {
        c.model.mlp.widths = {4, 2};
      },
      {"data.kind = \"sum_of_squares\"", "needs a model", "output width of 1"});
  refuse(
      [](Config& c) {
        c.model.mlp.widths = {Size{1} << 31, Size{1} << 31, 1};
      },
      {"model.widths", "more parameters than memory can address"});
  refuse([](Config& c) { c.model.dtype = DType::int32; },
         {"model.dtype", "must be one of float32, float64"});
  refuse(
      [](Config& c) {
        c.model.dtype = DType::float64;
        c.model.matmul_precision = MatmulPrecision::tf32;
      },
      {"model.matmul_precision = \"tf32\"", "needs model.dtype = \"float32\""});
  refuse([](Config& c) { c.model.mlp.activation = static_cast<Activation>(99); },
         {"model.activation = 99", "must be one of identity, relu, tanh, sigmoid, gelu"});
  refuse([](Config& c) { c.model.mlp.seed = static_cast<std::uint64_t>(-1); },
         {"model.seed", "2^63 - 1"});
}

TEST(ConfigRules, Batches) {
  refuse([](Config& c) { c.training.batch_size = 257; },
         {"training.batch_size = 257", "must be at most data.samples = 256"});
  refuse(
      [](Config& c) {
        c.model.mlp.widths = {4, Size{1} << 31, 1};
        c.training.batch_size = c.data.samples = Size{1} << 31;
      },
      {"training.batch_size = 2147483648", "more activations than memory can address"});
  refuse([](Config& c) { c.training.microbatches = 33; },
         {"training.microbatches = 33", "must be at most training.batch_size = 32"});
  refuse([](Config& c) { c.data.samples = std::numeric_limits<Size>::max(); },
         {"data.samples = 9223372036854775807", "more data than memory can address"});
}

TEST(ConfigRules, NamesAndWhatIsNotAvailable) {
  const auto refuse_text = [](const char* key, const char* text, const std::string& allowed) {
    expect_error([&] { load_text("", {.overrides = {fmt::format("{}={}", key, text)}}); },
                 {fmt::format("{} = \"{}\": {}", key, text, allowed)});
  };
  refuse_text("distributed.strategy", "fspd",
              "must be one of data, zero1, zero2, fsdp, hybrid, tensor; did you mean fsdp?");
  refuse_text("distributed.backend", "gloo", "must be one of auto, mpi, nccl");
  refuse_text("distributed.gradient_reduce_type", "max", "must be one of mean, sum");
  refuse_distributed([](auto& d) { d.strategy = static_cast<Strategy>(9); },
                     {"distributed.strategy = 9: must be one of data"});
  refuse_distributed([](auto& d) { d.mixed_precision = static_cast<MixedPrecision>(3); },
                     {"distributed.mixed_precision = 3", "must be one of no, fp16, bf16"});
  for (const MixedPrecision mixed : {MixedPrecision::fp16, MixedPrecision::bf16}) {
    refuse(
        [&](Config& c) {
          c.training.distributed.mixed_precision = mixed;
          c.model.dtype = DType::float64;
        },
        {"distributed.mixed_precision", "needs model.dtype = \"float32\""});
    refuse(
        [&](Config& c) {
          c.training.distributed.mixed_precision = mixed;
          c.model.matmul_precision = MatmulPrecision::tf32;
        },
        {"model.matmul_precision", "needs distributed.mixed_precision = \"no\""});
  }
  Config sum = tutorial();
  sum.training.distributed.gradient_reduce_type = GradientReduceType::sum;
  validate(sum, 4);
}

TEST(ConfigRules, DataAreReadFromWhereTheirKindSays) {
  refuse([](Config& c) { c.data.file = "f"; },
         {"data.file = \"f\": must not be set for data.kind = \"sum_of_squares\""});
  refuse([](Config& c) { c.data.y = "f"; },
         {"data.y = \"f\": must not be set for data.kind = \"sum_of_squares\""});
  refuse([](Config& c) { c.data.allow_nonfinite = true; },
         {"data.allow_nonfinite = true: must not be set for data.kind = \"sum_of_squares\""});
  refuse([](Config& c) { c.data = {.kind = DataKind::npy, .y = "y.npy"}; },
         {"data.x = \"\": must name an array for data.kind = \"npy\""});
  refuse([](Config& c) { c.data = {.kind = DataKind::npy, .file = "f", .x = "x", .y = "y"}; },
         {"data.file = \"f\": must not be set for data.kind = \"npy\""});
  // A plan needs no files.
  Config config = tutorial();
  config.data = {.kind = DataKind::npy, .x = "/nowhere/x.npy", .y = "/nowhere/y.npy"};
  validate(config, 4);
  config.data = {.kind = DataKind::hdf5, .file = "/nowhere/f.h5", .x = "x", .y = "y"};
  if (has_hdf5()) return validate(config, 4);
  refuse([&](Config& c) { c.data = config.data; },
         {"data.kind = \"hdf5\": needs a program that was built with parallel HDF5"});
}

TEST(ConfigRules, CheckpointsNeedADirectoryAndHdf5) {
  const std::vector<std::pair<const char*, nlohmann::json>> given{
      {"every_steps", 5}, {"every_minutes", 0.5}, {"at_end", false},   {"keep", 0},
      {"keep_best", 1},   {"async", true},        {"overwrite", true}, {"on_failure", "continue"}};
  for (const auto& [name, value] : given) {
    const std::string key = std::string("checkpoint.") + name;
    refuse([&](Config& c) { set(c, key, value); },
           {fmt::format("{} = {}: needs checkpoint.directory", key, value.dump())});
  }
  if (!has_hdf5())
    return refuse([](Config& c) { c.checkpoint.directory = "saves"; },
                  {"checkpoint.directory = \"saves\": needs a program that was built"});
  refuse([](Config& c) { c.checkpoint = {.directory = "saves", .keep = 0, .keep_best = 1}; },
         {"checkpoint.keep_best = 1: needs checkpoint.keep > 0"});
  Config config = tutorial();
  config.checkpoint = {.directory = "saves", .every_steps = 5, .keep_best = 1};
  validate(config, 4);
}

}  // namespace
}  // namespace tessera
