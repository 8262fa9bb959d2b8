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

std::vector<fs::path> checkpoints_of(const SharedDirectory& directory) {
  std::vector<fs::path> files;
  for (const fs::path& training : trainings_in(directory.path()))
    for (const Size step : steps_in(training)) files.push_back(training / checkpoint_name(step));
  return files;
}

/// Checks that all values of a checkpoint are finite.
void expect_finite(const std::string& path) {
  const CheckpointFile file(path);
  for (const auto& [name, tensor] : file.tensors())
    for (const float value : file.values<float>(name)) EXPECT_TRUE(std::isfinite(value)) << name;
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
  const std::string latest = newest_in(directory.path());
  EXPECT_GT(verify_checkpoint(latest), 0);
  EXPECT_EQ(checkpoints_of(directory).size(), 2U);
  for (const fs::path& file : checkpoints_of(directory)) expect_finite(file.string());
  Communicator::world().barrier();
  // A run that resumes diverges again and loses nothing.
  error_everywhere([&] { run<float>(setup, {.config = config}, latest); }, ExitCode::wrong_result);
  EXPECT_EQ(newest_in(directory.path()), latest);
  EXPECT_EQ(checkpoints_of(directory).size(), 2U);
}

// A program may catch the error and use the trainer again.
TEST_P(Divergence, LeavesATrainerThatCanBeginAgain) {
  const SharedDirectory directory;
  Experiment setup = train_test::primes();
  setup.training.optimizer.kind = OptimizerKind::sgd;
  setup.training.learning_rate = 1e30;
  Trainer<float> trainer(
      setup.model, setup.training, {},
      {.config = {.directory = directory.path(), .every_steps = 1, .async = GetParam()}});
  for (int time = 0; time < 2; ++time) {
    error_everywhere([&] { trainer.fit(setup.data); }, ExitCode::wrong_result);
    trainer.reset();
  }
  // Each had a folder of its own.
  EXPECT_EQ(checkpoints_of(directory).size(), 2U);
  for (const fs::path& file : checkpoints_of(directory))
    EXPECT_EQ(file.filename(), checkpoint_name(1));
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
  const TrainingState state{.step = 1};
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
  EXPECT_EQ(newest_in(directory.path()), file_of(directory, 1));
  EXPECT_EQ(checkpoints_of(directory).size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Way, Divergence, testing::Bool(),
                         [](const auto& test) { return test.param ? "async" : "sync"; });

}  // namespace
}  // namespace tessera
