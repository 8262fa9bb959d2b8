// SPDX-License-Identifier: Apache-2.0
// Any mesh and strategy writes the same file, and any mesh reads it.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/config/config_rules.hpp>

#include "checkpoint/checkpoint_support.hpp"
#include "engine/error_everywhere.hpp"

namespace tessera {
namespace {

using namespace checkpoint_test;
using train_test::error_everywhere;
using train_test::Experiment;
using train_test::primes;

Experiment adam(DType type) {
  Experiment setup = primes();
  setup.model.dtype = type;
  return setup;
}

Experiment momentum(DType type) {
  Experiment setup = adam(type);
  setup.training.optimizer.kind = OptimizerKind::sgd;
  setup.training.optimizer.momentum = 0.9;
  return setup;
}

MeshShape shape_of_mesh(const Experiment& setup) {
  return resolve_mesh({setup.model, setup.data, setup.training, {}}, Communicator::world().size());
}

constexpr Size small_piece = 300;  ///< several for each of the larger tensors

template <class S>
void expect_whole_file(const std::string& path, const Plan& plan) {
  EXPECT_GT(verify_checkpoint(path), 0);
  const CheckpointFile file(path);
  EXPECT_EQ(file.tensors().size(), checkpoint_tensors(plan).size());
  for (const CheckpointTensor& tensor : checkpoint_tensors(plan)) {
    std::vector<S> expected;
    for (Size i = 0; i < num_elements(tensor.shape); ++i)
      expected.push_back(element_of<S>(tensor.name, i));
    EXPECT_EQ(file.values<S>(tensor.name), expected) << tensor.name;
  }
}

template <class T>
void expect_written_and_read(const Experiment& base, std::size_t first) {
  const SharedDirectory directory;
  const Communicator world = Communicator::world();
  const std::string known = directory.file("known.safetensors"),
                    path = directory.file("written.safetensors");
  write_alone<T>(known, base);
  for (const auto& [what, setup] : some_strategies(base, 10, first)) {
    SCOPED_TRACE(what);
    const Mesh mesh(world, shape_of_mesh(setup));
    const Plan plan = plan_on(setup, mesh.shape());
    const CheckpointBytes planned = checkpoint_bytes(plan, mesh.rank());
    {
      const Engine<T> engine(plan, mesh, StepOptions::of(setup.training));
      EXPECT_EQ(read_tensors(known, world, engine, small_piece), planned.read);
      expect_elements(engine, mesh.rank());
    }
    const Engine<T> engine(plan, mesh, StepOptions::of(setup.training));
    set_elements(engine, mesh.rank());
    for (const bool from_copy : {false, true}) {
      write_file(path, world, engine, {}, small_piece, from_copy);
      if (world.rank() == 0) expect_whole_file<StateOf<T>>(path, plan);
      world.barrier();
    }
  }
}

TEST(CheckpointTensors, AnyMeshWritesAndReadsAdamInFloat32) {
  expect_written_and_read<float>(adam(DType::float32), 0);
}

TEST(CheckpointTensors, AnyMeshWritesAndReadsMomentumInFloat64) {
  expect_written_and_read<double>(momentum(DType::float64), 1);
}

// Each rank is a host of its own. Hosts that write by turns write when the one before has closed
// the file. With file_faults.cpp, others lose elements at the edges of their pages.
TEST(CheckpointTensors, HostsThatWriteByTurnsWriteTheSameFile) {
  const Communicator world = Communicator::world();
  const Size ranks = world.size();
  const bool on_nfs = std::getenv("NFS_PAGES") != nullptr;
  const Experiment setup = train_test::on_mesh(adam(DType::float32), {{"fsdp", ranks}}, "fsdp");
  const Mesh mesh(world, shape_of_mesh(setup));
  const Plan plan = plan_on(setup, mesh.shape());
  const Engine<float> engine(plan, mesh, StepOptions::of(setup.training));
  set_elements(engine, mesh.rank());
  const std::vector<std::pair<Size, bool>> ways{{ranks, false}, {ranks, true}, {1, false}};
  for (const auto& [turns, async] : ways) {
    SCOPED_TRACE(turns);
    const SharedDirectory directory;
    const auto tell = [&](SavePoint point) {
      if (point == SavePoint::tensor_written)
        std::ofstream(directory.file("order"), std::ios::app) << world.rank();
    };
    CheckpointStore store({.directory = directory.path(), .async = async}, world, tell,
                          {.turns = turns});
    store.save(engine, {.step = 1});
    store.finish();
    const auto read = [&] { read_tensors(store.last().string(), world, engine); };
    if (turns == 1 && ranks > 1 && on_nfs) {
      EXPECT_TRUE(error_everywhere(read).ends_with(": is damaged: its checksum differs"));
      continue;
    }
    read();
    std::string order;
    std::ifstream(directory.file("order")) >> order;
    EXPECT_TRUE(turns == 1 || std::is_sorted(order.begin(), order.end())) << order;
    EXPECT_GE(std::ssize(order), ranks);
    world.barrier();
  }
}

TEST(CheckpointTensors, MismatchesAreErrorsOnAllRanks) {
  const SharedDirectory directory;
  const Communicator world = Communicator::world();
  const std::string path = directory.file("a.safetensors");
  const Experiment setup = momentum(DType::float32);
  write_alone<float>(path, setup);
  const auto error_of_reading = [&]<class T>(Experiment other, T) {
    other = train_test::on_mesh(other, {{"fsdp", Size{world.size()}}}, "fsdp");
    const Mesh mesh(world, MeshShape({{"fsdp", Size{world.size()}}}));
    const Engine<T> engine(plan_on(other, mesh.shape()), mesh, StepOptions::of(other.training));
    return error_everywhere([&] { read_tensors(path, world, engine); });
  };
  Experiment other = setup;
  other.model.mlp.widths[1] = 9;
  EXPECT_EQ(error_of_reading(other, 0.0F),
            path +
                ": does not fit this run: layer1/bias is float32 (11,), not float32 (9,); "
                "layer1/kernel is float32 (3, 11), not float32 (3, 9); "
                "layer2/kernel is float32 (11, 13), not float32 (9, 13); "
                "moment1/layer1/bias is float32 (11,), not float32 (9,); "
                "moment1/layer1/kernel is float32 (3, 11), not float32 (3, 9); "
                "moment1/layer2/kernel is float32 (11, 13), not float32 (9, 13)");
  EXPECT_TRUE(error_of_reading(momentum(DType::float64), 0.0)
                  .starts_with(path + ": does not fit this run: layer1/bias is float32 (11,), not "
                                      "float64 (11,); "));
  EXPECT_TRUE(error_of_reading(adam(DType::float32), 0.0F)
                  .starts_with(path + ": does not fit this run: moment2/layer1/bias is missing; "));
  if (world.rank() == 0) {
    const float changed = 3;
    change_tensor(path, "moment1/layer3/bias", 16, &changed, 4);
  }
  world.barrier();
  EXPECT_EQ(error_of_reading(setup, 0.0F),
            path + ": moment1/layer3/bias: is damaged: its checksum differs");
}

}  // namespace
}  // namespace tessera
