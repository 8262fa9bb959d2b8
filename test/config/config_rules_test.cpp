// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>

#include <tessera/config/config_rules.hpp>
#include <tessera/config/model_kinds.hpp>
#include <tessera/io/hdf5_file.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

using config_test::expect_error;
using config_test::load_text;
using config_test::tutorial;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Expects that the tutorial with `change` is refused on `ranks` ranks.
void refuse(const std::function<void(Config&)>& change, const std::vector<std::string>& parts,
            Size ranks = 4) {
  Config config = tutorial();
  change(config);
  expect_error([&] { validate(config, ranks); }, parts);
}

void refuse_distributed(const std::function<void(DistributedConfig&)>& change,
                        const std::vector<std::string>& parts, Size ranks = 4) {
  refuse([&](Config& config) { change(config.training.distributed); }, parts, ranks);
}

TEST(ConfigRules, TutorialIsValidOnAnyNumberOfRanks) {
  for (Size ranks : {1, 2, 3, 7, 64, 100000}) validate(tutorial(), ranks);
}

TEST(ConfigRules, Sizes) {
  for (Size bad : {Size{0}, Size{-1}, std::numeric_limits<Size>::min()}) {
    const std::string value = " = " + std::to_string(bad);
    refuse([&](Config& c) { c.training.num_epochs = bad; },
           {"training.num_epochs" + value, "must be positive"});
    refuse([&](Config& c) { c.training.batch_size = bad; },
           {"training.batch_size" + value, "must be positive"});
    refuse([&](Config& c) { c.training.microbatches = bad; },
           {"training.microbatches" + value, "must be positive"});
    refuse([&](Config& c) { c.data.samples = bad; }, {"data.samples" + value, "must be positive"});
    refuse([&](Config& c) { c.training.distributed.bucket_bytes = bad; },
           {"distributed.bucket_bytes" + value, "must be positive"});
    refuse(
        [&](Config& c) {
          c.model.mlp.widths = {4, bad, 1};
        },
        {"model.widths", std::to_string(bad), "must all be positive"});
    refuse_distributed([&](auto& d) { d.world_size = bad; },
                       {"distributed.world_size" + value, "must be positive"});
    refuse_distributed([&](auto& d) { d.num_nodes = bad; },
                       {"distributed.num_nodes" + value, "must be positive"});
    refuse_distributed([&](auto& d) { d.num_processes_per_node = bad; },
                       {"distributed.num_processes_per_node" + value, "must be positive"});
    refuse_distributed([&](auto& d) { d.tensor_parallel_size = bad; },
                       {"distributed.tensor_parallel_size" + value, "must be positive"});
    refuse_distributed([&](auto& d) { d.pipeline_parallel_size = bad; },
                       {"distributed.pipeline_parallel_size" + value, "must be positive"});
  }
}

TEST(ConfigRules, StepsBetweenChecksOfReplicas) {
  refuse([](Config& c) { c.training.check_replicas_every = -1; },
         {"training.check_replicas_every = -1: must not be negative"});
  for (Size steps : {Size{0}, Size{1}, std::numeric_limits<Size>::max()}) {
    Config config = tutorial();
    config.training.check_replicas_every = steps;
    validate(config, 4);
  }
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
  EXPECT_EQ(make_model(config.model).layers.front().out, 64);
  config.model.residual_mlp.output_width = 2;
  expect_error([&] { validate(config, 1); },
               {"data.kind = \"sum_of_squares\": needs a model", "output width of 1"});
  config.model.residual_mlp.output_width = 1;
  config.model.residual_mlp.width = Size{1} << 40;
  config.model.residual_mlp.inner_width = Size{1} << 40;
  expect_error([&] { validate(config, 1); },
               {"model.residual_mlp.width = 1099511627776", "than memory can address"});
  config = tutorial();
  config.model.residual_mlp.blocks = 3;
  expect_error([&] { validate(config, 1); },
               {"model.kind = \"mlp\": must be \"residual_mlp\" if keys such as"});
  expect_error(
      [] { load_text("[model]\nkind = \"residual_mlp\"\n[model.residual_mlp]\nwidht = 3"); },
      {"model.residual_mlp.widht", "did you mean model.residual_mlp.width?"});
  const Config read = load_text(
      "[model]\nkind = \"residual_mlp\"\n[model.residual_mlp]\nblocks = 3\ninner_width = 7");
  EXPECT_EQ(read.model.residual_mlp.blocks, 3);
  EXPECT_EQ(read.model.residual_mlp.inner_width, 7);
  EXPECT_EQ(load_text(config_as_toml(read)).model.residual_mlp, read.model.residual_mlp);
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
        c.model.mlp.widths = {Size{1} << 40, Size{1} << 40, 1};
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
  refuse([](Config& c) { c.training.microbatches = 33; },
         {"training.microbatches = 33", "must be at most training.batch_size = 32"});
  refuse([](Config& c) { c.data.samples = std::numeric_limits<Size>::max(); },
         {"data.samples = 9223372036854775807", "more data than memory can address"});
}

TEST(ConfigRules, PartsHaveTheirOwnRules) {
  refuse([](Config& c) { c.training.optimizer.beta1 = 1; }, {"optimizer.beta1 = 1"});
  refuse([](Config& c) { c.training.optimizer.momentum = 0.9; }, {"optimizer.momentum = 0.9"});
  refuse([](Config& c) { c.training.schedule.kind = ScheduleKind::cosine; },
         {"schedule.steps = 0"});
  refuse([](Config& c) { c.training.clip.global_norm = -1; }, {"clip.global_norm = -1"});
}

TEST(ConfigRules, NamesAndWhatIsNotAvailable) {
  refuse_distributed(
      [](auto& d) { d.strategy = "fspd"; },
      {"distributed.strategy = \"fspd\"", "must be one of data, zero1, zero2, fsdp, hybrid, tensor",
       "did you mean fsdp?"});
  refuse_distributed([](auto& d) { d.backend = "gloo"; },
                     {"distributed.backend = \"gloo\": is not available, use mpi"});
  refuse_distributed([](auto& d) { d.backend = "tcp"; },
                     {"distributed.backend = \"tcp\": must be one of auto, mpi, nccl, gloo"});
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
  refuse_distributed([](auto& d) { d.gradient_reduce_type = "max"; },
                     {"distributed.gradient_reduce_type = \"max\": must be one of mean, sum"});
  Config sum = tutorial();
  sum.training.distributed.gradient_reduce_type = "sum";
  validate(sum, 4);
}

TEST(ConfigRules, NodesAreThoseOfTheLaunch) {
  const Topology even = Topology::blocks(4, 2), uneven = Topology::blocks(3, 2);
  DistributedConfig config;
  check_nodes(config, uneven);
  config.num_nodes = 2;
  check_nodes(config, even);
  check_nodes(config, uneven);
  expect_error([&] { check_nodes(config, Topology::blocks(4, 4)); },
               {"distributed.num_nodes = 2: must equal the number of nodes of this launch, 1"});
  config.num_processes_per_node = 2;
  check_nodes(config, even);
  expect_error(
      [&] { check_nodes(config, uneven); },
      {"distributed.num_processes_per_node = 2: must equal the number of processes on every "
       "node of this launch, which has 1 on node 2 of 2"});
}

TEST(ConfigRules, LaunchSizes) {
  refuse_distributed([](auto& d) { d.world_size = 8; },
                     {"distributed.world_size = 8", "the number of ranks, 4"});
  refuse_distributed(
      [](auto& d) {
        d.world_size = 4;
        d.num_nodes = 2;
        d.num_processes_per_node = 3;
      },
      {"distributed.num_nodes = 2", "num_processes_per_node = 3", "distributed.world_size, 4"});
  refuse_distributed(
      [](auto& d) {
        d.num_nodes = 2;
        d.num_processes_per_node = 3;
      },
      {"distributed.num_nodes = 2", "num_processes_per_node = 3", "the number of ranks, 4"});
  refuse_distributed([](auto& d) { d.num_nodes = 3; },
                     {"distributed.num_nodes = 3", "must divide the number of ranks, 4"});
  refuse_distributed([](auto& d) { d.num_processes_per_node = 3; },
                     {"distributed.num_processes_per_node = 3", "must divide", "4"});
  refuse_distributed([](auto& d) { d.num_nodes = d.num_processes_per_node = Size{1} << 62; },
                     {"distributed.num_nodes = 4611686018427387904"});
  refuse_distributed([](auto& d) { d.tensor_parallel_size = 3; },
                     {"distributed.tensor_parallel_size = 3", "pipeline_parallel_size = 1",
                      "must divide the number of ranks, 4"});
  refuse_distributed(
      [](auto& d) { d.tensor_parallel_size = d.pipeline_parallel_size = Size{1} << 40; },
      {"distributed.tensor_parallel_size", "must divide"});
  refuse_distributed([](auto& d) { d.enabled = false; },
                     {"distributed.enabled = false", "needs one rank", "4"});
  Config single = tutorial();
  single.training.distributed.enabled = false;
  validate(single, 1);
}

TEST(ConfigRules, NumberOfRanks) {
  for (Size ranks : {Size{0}, Size{-4}, Size{1} << 31})
    refuse([](Config&) {}, {"ranks = " + std::to_string(ranks), "must be from 1"}, ranks);
}

TEST(ConfigRules, MeshLists) {
  refuse_distributed([](auto& d) { d.mesh_axis_names = {"data"}; },
                     {"distributed.mesh_axis_names = [\"data\"]", "needs distributed.mesh_shape"});
  refuse_distributed([](auto& d) { d.mesh_shape = {4}; },
                     {"distributed.mesh_axis_names = []", "distributed.mesh_shape = [4]"});
  refuse_distributed(
      [](auto& d) {
        d.mesh_shape = {2, 2};
        d.mesh_axis_names = {"data"};
      },
      {"distributed.mesh_axis_names = [\"data\"]", "distributed.mesh_shape = [2, 2]"});
  refuse_distributed(
      [](auto& d) {
        d.mesh_shape = {2, 2};
        d.mesh_axis_names = {"data", "data"};
      },
      {"distributed.mesh_shape = [2, 2]", "unique", "data"});
  refuse_distributed(
      [](auto& d) {
        d.mesh_shape = {4};
        d.mesh_axis_names = {"batch"};
      },
      {"distributed.mesh_axis_names = [\"batch\"]", "must be one of pipeline, data, fsdp, model"});
}

TEST(ConfigRules, MeshSizes) {
  const auto refuse_mesh = [](std::vector<Size> shape, std::vector<std::string> names,
                              const std::vector<std::string>& parts) {
    refuse_distributed(
        [&](auto& d) {
          d.mesh_shape = shape;
          d.mesh_axis_names = names;
        },
        parts);
  };
  refuse_mesh({0}, {"data"}, {"distributed.mesh_shape = [0]", "must be positive or one -1"});
  refuse_mesh({-2}, {"data"}, {"distributed.mesh_shape = [-2]", "must be positive or one -1"});
  refuse_mesh({-1, -1}, {"data", "model"}, {"distributed.mesh_shape = [-1, -1]", "only one"});
  refuse_mesh({3}, {"data"}, {"distributed.mesh_shape = [3]", "multiply to 3", "4 ranks"});
  refuse_mesh({8}, {"data"}, {"distributed.mesh_shape = [8]", "multiply to 8", "4 ranks"});
  refuse_mesh({-1, 3}, {"data", "model"},
              {"distributed.mesh_shape = [-1, 3]", "multiply to 3", "divide the 4 ranks"});
  refuse_mesh({Size{1} << 40, Size{1} << 40}, {"data", "model"}, {"distributed.mesh_shape = ["});
}

TEST(ConfigRules, ParallelSizesAgreeWithTheMesh) {
  refuse_distributed(
      [](auto& d) {
        d.mesh_shape = {4};
        d.mesh_axis_names = {"data"};
        d.tensor_parallel_size = 2;
      },
      {"distributed.tensor_parallel_size = 2", "\"model\", which is 1"});
  refuse_distributed(
      [](auto& d) {
        d.mesh_shape = {2, 2};
        d.mesh_axis_names = {"pipeline", "data"};
        d.pipeline_parallel_size = 1;
      },
      {"distributed.pipeline_parallel_size = 1", "\"pipeline\", which is 2"});
  refuse_distributed([](auto& d) { d.pipeline_parallel_size = 3; },
                     {"distributed.tensor_parallel_size = 1",
                      "times distributed.pipeline_parallel_size = 3 must divide"});
}

TEST(ConfigRules, ResolvedMeshes) {
  Config config = tutorial();
  EXPECT_EQ(resolve_mesh(config, 4).to_string(), "data=4");
  EXPECT_EQ(resolve_mesh(config, 1).to_string(), "data=1");
  DistributedConfig& distributed = config.training.distributed;
  distributed.mesh_shape = {1, -1};
  distributed.mesh_axis_names = {"model", "data"};
  EXPECT_EQ(resolve_mesh(config, 6).to_string(), "model=1,data=6");
  distributed.mesh_shape = {2, -1};  // the rest of the ranks, not all of them
  distributed.mesh_axis_names = {"data", "model"};
  EXPECT_EQ(resolve_mesh(config, 2).to_string(), "data=2,model=1");
  distributed.mesh_shape = {2, 3, 4};
  distributed.mesh_axis_names = {"model", "fsdp", "data"};
  EXPECT_EQ(resolve_mesh(config, 24).to_string(), "model=2,fsdp=3,data=4");
}

TEST(ConfigRules, ResolvingFillsInTheLaunchAndIsIdempotent) {
  const Config once = resolve(tutorial(), 6);
  EXPECT_EQ(once.training.distributed.world_size, 6);
  EXPECT_EQ(once.training.distributed.mesh_shape, (std::vector<Size>{6}));
  EXPECT_EQ(once.training.distributed.mesh_axis_names, (std::vector<std::string>{"data"}));
  EXPECT_EQ(config_as_toml(resolve(once, 6)), config_as_toml(once));
  expect_error([&] { resolve(once, 4); }, {"distributed.world_size = 6"});
}

TEST(ConfigRules, CheckpointsNeedADirectoryAndHdf5) {
  refuse([](Config& c) { c.checkpoint.every_steps = 5; },
         {"checkpoint.every_steps = 5: needs checkpoint.directory"});
  refuse([](Config& c) { c.checkpoint.every_minutes = 0.5; }, {"checkpoint.every_minutes = 0.5"});
  refuse([](Config& c) { c.checkpoint.at_end = false; }, {"checkpoint.at_end = false"});
  refuse([](Config& c) { c.checkpoint.keep = 0; }, {"checkpoint.keep = 0"});
  refuse([](Config& c) { c.checkpoint.keep_best = 1; }, {"checkpoint.keep_best = 1"});
  refuse([](Config& c) { c.checkpoint.async = true; }, {"checkpoint.async = true"});
  refuse([](Config& c) { c.checkpoint.on_failure = FailedSave::go_on; },
         {"checkpoint.on_failure = \"continue\": needs checkpoint.directory"});
  refuse([](Config& c) { c.checkpoint = {.directory = "saves", .every_steps = -1}; },
         {"checkpoint.every_steps = -1: must not be negative"});
  if (!has_hdf5())
    return refuse([](Config& c) { c.checkpoint.directory = "saves"; },
                  {"checkpoint.directory = \"saves\": needs a program that was built"});
  refuse([](Config& c) { c.checkpoint = {.directory = "saves", .keep = 0, .keep_best = 1}; },
         {"checkpoint.keep_best = 1: needs checkpoint.keep > 0"});
  Config config = tutorial();
  config.checkpoint = {.directory = "saves", .every_steps = 5, .keep_best = 1};
  validate(config, 4);
}

TEST(ConfigRules, PlannedRanks) {
  Config config = tutorial();
  DistributedConfig& distributed = config.training.distributed;
  EXPECT_EQ(planned_ranks(config), 1);
  distributed.tensor_parallel_size = 3;
  EXPECT_EQ(planned_ranks(config), 3);
  distributed.mesh_shape = {-1};
  EXPECT_EQ(planned_ranks(config), 1);
  distributed.mesh_shape = {4, 2};
  EXPECT_EQ(planned_ranks(config), 8);
  distributed.num_nodes = 5;
  distributed.num_processes_per_node = 5;
  EXPECT_EQ(planned_ranks(config), 25);
  distributed.world_size = 7;
  EXPECT_EQ(planned_ranks(config), 7);
}

TEST(ConfigRules, PlannedNodes) {
  Config config = tutorial();
  DistributedConfig& distributed = config.training.distributed;
  const auto nodes = [&] { return planned_topology(config).ranks_by_node(); };
  EXPECT_FALSE(planned_topology(config).is_known());
  distributed.mesh_shape = {8};
  distributed.num_nodes = 2;
  EXPECT_EQ(nodes(), (std::vector<Size>{4, 4}));
  distributed.num_nodes.reset();
  distributed.num_processes_per_node = 2;
  EXPECT_EQ(nodes(), (std::vector<Size>{2, 2, 2, 2}));
  distributed.mesh_shape = {size_nodes, size_per_node};
  distributed.mesh_axis_names = {"data", "fsdp"};
  distributed.num_nodes = 3;
  EXPECT_EQ(nodes(), (std::vector<Size>{2, 2, 2}));
  EXPECT_EQ(resolve_mesh(config, planned_topology(config)).to_string(), "data=3,fsdp=2");
  EXPECT_EQ(resolve(config, planned_topology(config)).training.distributed.mesh_shape,
            (std::vector<Size>{3, 2}));
  distributed.num_nodes.reset();
  distributed.mesh_shape = {Size{1} << 40, 1};
  EXPECT_FALSE(planned_topology(config).is_known());
}

TEST(ConfigRules, MeshSizesOfTheNodes) {
  Config config = config_test::load_text(
      "[model]\nwidths = [4, 64, 1]\n"
      "[distributed]\nmesh_shape = ['nodes', 'per_node']\nmesh_axis_names = ['data', 'fsdp']");
  EXPECT_EQ(resolve_mesh(config, Topology::blocks(6, 2)).to_string(), "data=3,fsdp=2");
  const std::string text = config_as_toml(config);
  EXPECT_NE(text.find("mesh_shape = [\"nodes\", \"per_node\"]"), std::string::npos);
  EXPECT_EQ(config_as_toml(config_test::load_text(text)), text);
  expect_error([&] { validate(config, 6); },
               {"distributed.mesh_shape = [\"nodes\", \"per_node\"]", "needs the nodes"});
  for (const char* wrong : {"['node']", "'nodes'", "[1.5]", "[-9223372036854775808]"})
    expect_error(
        [&] { config_test::load_text(std::string("[distributed]\nmesh_shape = ") + wrong); },
        {"distributed.mesh_shape = ", "must be a list of integers, \"nodes\" and \"per_node\""});
}

// A group that shards stays inside a node, behind the axis model.
TEST(ConfigRules, MeshOfHybridFromTheNodes) {
  Config config = tutorial();
  DistributedConfig& distributed = config.training.distributed;
  distributed.strategy = "hybrid";
  const auto mesh = [&](Size ranks, Size per_node) {
    return resolve_mesh(config, Topology::blocks(ranks, per_node)).to_string();
  };
  EXPECT_EQ(mesh(8, 4), "data=2,fsdp=4");
  EXPECT_EQ(mesh(4, 4), "fsdp=4");
  distributed.tensor_parallel_size = 2;
  EXPECT_EQ(mesh(8, 4), "data=2,fsdp=2,model=2");
  distributed.pipeline_parallel_size = 2;
  EXPECT_EQ(mesh(8, 4), "pipeline=2,fsdp=2,model=2");
  EXPECT_EQ(mesh(16, 4), "pipeline=2,data=2,fsdp=2,model=2");
}

}  // namespace
}  // namespace tessera
