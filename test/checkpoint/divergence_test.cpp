// SPDX-License-Identifier: Apache-2.0
// A state that is not finite is not saved, and the last good checkpoint stays.
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <tessera/base/alias.hpp>

#include "checkpoint/resume_support.hpp"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using namespace checkpoint_test;
using train_test::error_everywhere;

class Divergence : public testing::TestWithParam<bool> {};

std::size_t checkpoints_in_directory(const SharedDirectory& directory) {
  std::size_t count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory.path()))
    count += entry.path().filename().string().starts_with("step_") ? 1 : 0;
  return count;
}

/// Checks that all values of a checkpoint are finite.
void expect_finite(const std::string& path) {
  const Hdf5File file = Hdf5File::open(path);
  for (const ArrayFacts& facts : file.arrays()) {
    if (facts.name == "validations") continue;
    std::vector<double> values(num_elements(facts.shape));
    file.read(facts.name, DType::float64, {{Shape(facts.shape.size(), 0), facts.shape}},
              values.data());
    for (const double value : values) EXPECT_TRUE(std::isfinite(value)) << facts.name;
  }
}

// The first states are finite and are saved; the later ones are not.
TEST_P(Divergence, EndsTheTrainingAndKeepsTheLastGoodCheckpoint) {
  const SharedDirectory directory;
  Experiment setup = train_test::primes();
  setup.training.optimizer.kind = OptimizerKind::sgd;
  setup.training.learning_rate = 1e6;
  setup.training.num_epochs = 9;
  const CheckpointConfig config{
      .directory = directory.path(), .every_steps = 1, .async = GetParam()};
  const std::string message =
      error_everywhere([&] { run<float>(setup, {.config = config}); }, ExitCode::wrong_result);
  EXPECT_TRUE(message.starts_with("training diverged: ")) << message;
  const auto latest = CheckpointStore::latest(directory.path());
  ASSERT_TRUE(latest);
  EXPECT_GT(verify_checkpoint(latest->string()), 0);
  EXPECT_EQ(checkpoints_in_directory(directory), 2U);
  for (const fs::directory_entry& entry : fs::directory_iterator(directory.path()))
    if (entry.path().extension() == ".h5") expect_finite(entry.path().string());
  Communicator::world().barrier();
  // A run that resumes diverges again and loses nothing.
  error_everywhere([&] { run<float>(setup, {.config = config}, latest->string()); },
                   ExitCode::wrong_result);
  EXPECT_EQ(CheckpointStore::latest(directory.path()), latest);
  EXPECT_EQ(checkpoints_in_directory(directory), 2U);
}

// A program may catch the error and use the trainer again.
TEST_P(Divergence, LeavesATrainerThatCanBeginAgain) {
  const SharedDirectory directory;
  Experiment setup = train_test::primes();
  setup.training.optimizer.kind = OptimizerKind::sgd;
  setup.training.learning_rate = 1e30;
  Trainer<float> trainer(setup.model, setup.training, {},
                         {.config = {.directory = directory.path(),
                                     .every_steps = 1,
                                     .async = GetParam(),
                                     .overwrite = true}});
  for (int time = 0; time < 2; ++time) {
    error_everywhere([&] { trainer.fit(setup.data); }, ExitCode::wrong_result);
    trainer.reset();
  }
  EXPECT_EQ(CheckpointStore::latest(directory.path()), file_of(directory, 1));
}

// The element is on one rank only.
TEST_P(Divergence, OneElementOfOneRankIsEnough) {
  const SharedDirectory directory;
  const Communicator world = Communicator::world();
  const Experiment setup =
      train_test::on_mesh(train_test::primes(), {{"fsdp", Size{world.size()}}}, "fsdp");
  const Mesh mesh(world, MeshShape({{"fsdp", Size{world.size()}}}));
  const Engine<float> engine(plan_on(setup, mesh.shape()), mesh, StepOptions::of(setup.training));
  set_elements(engine, mesh.rank());
  CheckpointStore store({.directory = directory.path(), .async = GetParam()}, world);
  const TrainingState state{.step = 1, .config = "{}", .provenance = "{}"};
  const auto save = [&](const TrainingState& saved) {
    store.save(engine, saved);
    store.finish();
  };
  save(state);
  TrainingState other = state;
  other.step = 2;
  other.losses_so_far = {1, std::numeric_limits<double>::infinity()};
  EXPECT_EQ(error_everywhere([&] { save(other); }, ExitCode::wrong_result),
            "training diverged: the loss of a batch is not finite; " + file_of(directory, 2) +
                " is not written");
  other.losses_so_far = {};
  const std::vector<CheckpointPart> parts = checkpoint_parts(engine.plan(), mesh.rank());
  if (world.rank() == world.size() - 1)
    Kokkos::deep_copy(alias_vector(local_tensor(engine, parts.back().part).values.data(), 1), NAN);
  const std::string name = checkpoint_tensors(engine.plan()).back().name;
  EXPECT_EQ(error_everywhere([&] { save(other); }, ExitCode::wrong_result),
            "training diverged: a value of " + name + " is not finite; " + file_of(directory, 2) +
                " is not written");
  EXPECT_EQ(CheckpointStore::latest(directory.path()), file_of(directory, 1));
  EXPECT_EQ(checkpoints_in_directory(directory), 1U);
}

INSTANTIATE_TEST_SUITE_P(Way, Divergence, testing::Bool(),
                         [](const auto& test) { return test.param ? "async" : "sync"; });

}  // namespace
}  // namespace tessera
