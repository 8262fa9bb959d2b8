// SPDX-License-Identifier: Apache-2.0
// The table of src/examples/README.md says which line replaces a name of another library. Here are
// its lines.
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

namespace tessera {
namespace {

// Runs a line and notes it.
#define TABLE_LINE(...)                       \
  lines.emplace_back("`" #__VA_ARGS__ "` |"); \
  __VA_ARGS__

using Lines = std::vector<std::string>;

Lines process_and_mesh() {
  Lines lines;
  int argc = 0;
  char** argv = nullptr;
  Runtime runtime(argc, argv);
  const Communicator world = Communicator::world();

  TABLE_LINE(const bool is_main = runtime.world_rank() == 0;)
  TABLE_LINE(const bool is_local_main = runtime.local_rank() == 0;)
  TABLE_LINE(const int ranks = runtime.world_size();)
  EXPECT_EQ(is_main, world.rank() == 0);
  EXPECT_TRUE(is_local_main || !is_main);
  EXPECT_EQ(ranks, world.size());

  TABLE_LINE(const Mesh line = create_data_parallel_mesh(world);)
  TABLE_LINE(const Mesh mesh = create_device_mesh(world, {{"data", -1}, {"model", 1}});)
  TABLE_LINE(const int data_parallel = mesh.over({"data", "fsdp"}).size();)
  TABLE_LINE(const int tensor_parallel = mesh.axis("model").size();)
  TABLE_LINE(const int stages = mesh.axis("pipeline").size();)
  TABLE_LINE(const std::vector<Axis>& axes = mesh.shape().axes();)
  TABLE_LINE(const std::string drawing = visualize_mesh(mesh.shape());)
  EXPECT_EQ(line.axis("data").size(), ranks);
  EXPECT_EQ(data_parallel, ranks);
  EXPECT_EQ(tensor_parallel * stages, 1);
  EXPECT_EQ(axes.front(), (Axis{"data", ranks}));
  EXPECT_NE(drawing.find("data"), std::string::npos);
  return lines;
}

Lines arrays() {
  Lines lines;
  const Mesh mesh = create_data_parallel_mesh(Communicator::world());
  const int ranks = mesh.world().size();
  const Array<float> array{Vector<float>("x", 2 * ranks), {2 * ranks, 1}};
  Kokkos::deep_copy(array.values, 1.F);
  const ArrayState<float> batch{{"x", array}}, state{{"kernel", array}};

  TABLE_LINE(const NamedSharding rows{mesh, PartitionSpec::parse("P('data', None)")};)
  TABLE_LINE(const NamedSharding sharding = create_data_parallel_sharding(mesh);)
  TABLE_LINE(const ShardedTensor<float> x = shard_array(array, rows);)
  TABLE_LINE(const ShardedState<float> own_rows = shard_batch(batch, sharding);)
  TABLE_LINE(const ShardedState<float> copies = replicate(state, mesh);)
  TABLE_LINE(const ShardedState<float> parts = shard_model_state(state, mesh, "shard");)
  TABLE_LINE(const ShardedState<float> by_path =
                 shard_model_state(state, mesh, {{"kernel", rows.spec}});)
  TABLE_LINE(const std::string text = inspect_sharding(x, "x");)
  TABLE_LINE(const ShardedTensor<float> whole = redistribute(x, replicated(mesh.shape()));)
  for (const auto& tensor : {x, own_rows.at("x"), parts.at("kernel"), by_path.at("kernel")})
    EXPECT_EQ(tensor.piece().extent, (Shape{2, 1}));
  for (const auto& tensor : {whole, copies.at("kernel")})
    EXPECT_EQ(tensor.piece().extent, (Shape{2 * ranks, 1}));
  EXPECT_NE(text.find("P('data', None)"), std::string::npos);

  ShardedState<float> gradients;
  gradients.emplace("kernel", ShardedTensor<float>(mesh, {1}, {Placement::partial()}));
  Kokkos::deep_copy(gradients.at("kernel").local(), 1.F);
  TABLE_LINE(gradients = all_reduce_gradients(std::move(gradients), "mean");)
  const Kokkos::View<float[1], Kokkos::HostSpace> value("value"), sum("sum");
  Kokkos::deep_copy(value, Kokkos::subview(gradients.at("kernel").local(), std::pair(0, 1)));
  EXPECT_EQ(value(0), 1);
  Kokkos::deep_copy(sum, 1.F);
  TABLE_LINE(mesh.axis("data").all_reduce(sum);)
  EXPECT_EQ(sum(0), ranks);
  TABLE_LINE(const MeshRules rules = default_rules();)
  EXPECT_EQ(rules.at("batch").front(), "data");
  return lines;
}

Lines training_loop() {
  Lines lines;
  const ModelConfig model{.mlp = {.widths = {4, 8, 1}}};
  const Matrix<float> x("x", 32, 4), y("y", 32, 1);
  TrainingConfig training;
  DistributedConfig distributed;
  training.num_epochs = 1;

  TABLE_LINE(distributed.mesh_shape = {-1}, distributed.mesh_axis_names = {"data"};)
  TABLE_LINE(distributed.strategy = Strategy::data;)
  TABLE_LINE(distributed.tensor_parallel_size = 1;)
  TABLE_LINE(distributed.parameter_specs["layer1/kernel"] = "P(None, 'model')";)
  TABLE_LINE(training.distributed = distributed;)
  TABLE_LINE(training.microbatches = 2;)
  TABLE_LINE(training.activation_checkpointing.units = 1;)
  TABLE_LINE(training.clip.global_norm = 1.0;)
  training.distributed.tensor_parallel_size.reset();
  training.distributed.parameter_specs.clear();
  TABLE_LINE(Trainer trainer(model, training);)
  TABLE_LINE(const TrainingMetrics metrics = trainer.fit(x, y);)
  TABLE_LINE(const Size nodes = trainer.topology().num_nodes();)
  TABLE_LINE(const std::optional<Size> ranks_per_node = trainer.topology().per_node();)
  EXPECT_EQ(metrics.steps, 1);
  EXPECT_EQ(trainer.mesh().shape().size_of("data"), trainer.mesh().world().size());
  EXPECT_EQ(nodes * ranks_per_node.value_or(0), trainer.mesh().world().size());
  return lines;
}

TEST(OtherNames, HaveTheLinesOfTheTable) {
  Lines lines = process_and_mesh();
  for (const Lines& more : {arrays(), training_loop()})
    lines.insert(lines.end(), more.begin(), more.end());
  std::ifstream readme(TESSERA_EXAMPLES "/README.md");
  Lines rows;
  for (std::string row; std::getline(readme, row);) {
    const std::size_t begin = row.rfind("| `") + 2;
    if (row.ends_with(";` |")) rows.push_back(row.substr(begin));
  }
  EXPECT_EQ(rows, lines);
}

}  // namespace
}  // namespace tessera
