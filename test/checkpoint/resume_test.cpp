// SPDX-License-Identifier: Apache-2.0
// A training that stops and resumes equals one that never stopped.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "checkpoint/resume_support.hpp"
#include "engine/serial_training.hpp"

namespace tessera {
namespace {

using checkpoint_test::End;
using checkpoint_test::expect_resumes;
using checkpoint_test::expect_same_end;
using checkpoint_test::file_of;
using checkpoint_test::ranks;
using checkpoint_test::run;
using checkpoint_test::SharedDirectory;
using train_test::error_everywhere;
using train_test::Experiment;
using train_test::on_mesh;
using train_test::primes;
using train_test::relative_difference;

TEST(Resume, EveryStepOfReplicasShuffledValidatedInMicrobatches) {
  Experiment setup = primes();
  setup.training.microbatches = 3;
  setup.training.distributed.overlap = true;
  setup.training.clip.global_norm = 0.5;
  setup.training.schedule = {.kind = ScheduleKind::cosine, .steps = 6, .end_factor = 0.1};
  setup.data.shuffle = true;
  setup.data.validation_samples = 7;
  expect_resumes<float>(setup);
}

TEST(Resume, EveryStepOfShardsWithMomentumInFloat64SavedInTheBackground) {
  Experiment setup = on_mesh(primes(), {{"fsdp", ranks()}}, "fsdp");
  setup.training.optimizer.kind = OptimizerKind::sgd;
  setup.training.optimizer.momentum = 0.9;
  setup.data.shuffle = true;
  setup.data.validation_samples = 7;
  expect_resumes<double>(setup, {}, true);
}

// Ranks keep shares of parameters whose 16-bit copies layers use.
TEST(Resume, MixedPrecision) {
  Experiment setup = on_mesh(primes(), {{"data", ranks()}}, "zero1");
  setup.training.distributed.mixed_precision = MixedPrecision::fp16;
  expect_resumes<Float16>(setup, {2, 3});
}

TEST(Resume, PipelinesAndSplitLayers) {
  if (ranks() % 2 != 0) return;
  Experiment setup = on_mesh(primes(), {{"pipeline", 2}, {"model", ranks() / 2}}, "tensor");
  setup.training.microbatches = 2;
  expect_resumes<float>(setup, {2, 3});
}

// Chunks lie as a V, so the last layers are on the first stage.
TEST(Resume, PipelinesInAV) {
  if (ranks() % 2 != 0) return;
  Experiment setup = on_mesh(primes(), {{"pipeline", 2}, {"fsdp", ranks() / 2}}, "fsdp");
  setup.training.microbatches = 3;
  setup.training.distributed.schedule = PipelineSchedule::zbv;
  setup.training.distributed.virtual_stages = 2;
  expect_resumes<float>(setup, {2, 3});
}

// A draw depends on the number of the step.
TEST(Resume, ModelsThatDraw) { expect_resumes<float>(train_test::small_vae(), {2, 3}); }

// The losses of the unfinished epoch are means over the targets that count.
TEST(Resume, IgnoredTargets) {
  Experiment setup =
      train_test::of_kind(ModelKind::transformer, DataKind::copy_task, LossKind::cross_entropy);
  setup.model.transformer = {
      .vocabulary = 3, .context = 5, .width = 4, .heads = 2, .blocks = 1, .inner_width = 3};
  setup.training.ignore_index = 2;
  setup.training.microbatches = 2;
  setup.data.validation_samples = 7;
  expect_resumes<float>(setup, {2, 3, 4});
}

TEST(Resume, ASignalOnOneRankStopsAllAtTheSameStep) {
  const SharedDirectory directory;
  const int last = static_cast<int>(ranks()) - 1;
  const bool is_last = Communicator::world().rank() == last;
  int asked = 0;
  const CheckpointConfig config{.directory = directory.path(), .at_end = false};
  const End stopped = run<float>(
      primes(), {.config = config, .wants_to_stop = [&] { return ++asked >= 2 && is_last; }});
  // It arrives after the second step. Ranks agree on it during the third one, the last of its
  // epoch.
  EXPECT_TRUE(stopped.metrics.stopped);
  EXPECT_EQ(stopped.metrics.steps, 3);
  EXPECT_EQ(stopped.metrics.checkpoints, 1);
  EXPECT_EQ(stopped.metrics.last_checkpoint, file_of(directory, 3));
  const End whole = run<float>(primes(), {});
  EXPECT_FALSE(whole.metrics.stopped);
  expect_same_end(run<float>(primes(), {}, file_of(directory, 3)), whole);
}

// Records after the checkpoint are written anew, and the loss of an epoch is that of all its
// batches.
TEST(Resume, MetricsContinueWithoutGapsOrDoubles) {
  const SharedDirectory directory;
  const auto records = [&](const std::string& name, const Checkpointing& checkpointing,
                           const std::string& from) {
    const std::string file = directory.file(name);
    Experiment setup = primes();
    setup.model.dtype = DType::float64;
    Trainer<double> trainer(setup.model, setup.training, {}, checkpointing,
                            {.output = {.metrics = file}});
    if (!from.empty()) trainer.resume(from);
    EXPECT_EQ(plan_violation(trainer.fit(setup.data)), "");
    std::vector<double> numbers;
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json record = nlohmann::json::parse(line);
      for (const char* key : {"step", "epoch", "loss", "gradient_norm", "learning_rate"})
        numbers.push_back(record[key]);
    }
    return numbers;
  };
  const CheckpointConfig every_step{.directory = directory.path(), .every_steps = 1, .keep = 0};
  const std::vector<double> whole = records("whole.jsonl", {.config = every_step}, "");
  ASSERT_EQ(whole.size(), 10U);
  // The file has records of later steps, as after a crash, and a line that was not completed.
  for (const Size step : {5, 4, 3, 2}) {
    SCOPED_TRACE(step);
    if (Communicator::world().rank() == 0)
      std::ofstream(directory.file("whole.jsonl"), std::ios::app) << "{\"step\": 1";
    const std::vector<double> resumed = records("whole.jsonl", {}, file_of(directory, step));
    ASSERT_EQ(resumed.size(), whole.size());
    EXPECT_LE(relative_difference(resumed, whole), 1e-14);
  }
}

TEST(Resume, ASecondFitUsesTheSameDirectory) {
  const SharedDirectory directory;
  const Experiment setup = primes();
  Trainer<float> trainer(setup.model, setup.training, {},
                         {.config = {.directory = directory.path(), .keep = 1}});
  trainer.fit(setup.data);
  const TrainingMetrics metrics = trainer.fit(setup.data);
  EXPECT_EQ(metrics.last_checkpoint, file_of(directory, 12));
  EXPECT_FALSE(std::filesystem::exists(file_of(directory, 6)));
  // A new training has a folder of its own.
  trainer.reset();
  const std::string other = trainer.fit(setup.data).last_checkpoint;
  EXPECT_EQ(other, file_of(directory, 6));
  EXPECT_NE(std::filesystem::path(other).parent_path(),
            std::filesystem::path(metrics.last_checkpoint).parent_path());
  EXPECT_TRUE(std::filesystem::exists(metrics.last_checkpoint));
}

// The file of a second fit() holds the losses of that one, and the steps of both.
TEST(Resume, GoesOnWithASecondFit) {
  const SharedDirectory directory;
  Experiment setup = primes();
  setup.data.shuffle = true;
  const auto trainer_with = [&](const CheckpointConfig& config) {
    return Trainer<float>(setup.model, setup.training, {}, {.config = config});
  };
  Trainer<float> whole = trainer_with({.directory = directory.path(), .every_steps = 1, .keep = 0});
  whole.fit(setup.data);
  const TrainingMetrics second = whole.fit(setup.data);
  for (Size step = 7; step <= 12; ++step) {
    SCOPED_TRACE(step);
    Trainer<float> resumed = trainer_with({});
    resumed.resume(file_of(directory, step));
    EXPECT_EQ(resumed.fit(setup.data).epoch_losses, second.epoch_losses);
    EXPECT_EQ(train_test::to_host(resumed.gather()), train_test::to_host(whole.gather()));
  }
}

// Without changes of parameters, the loss of an epoch is the same in any order of the samples,
// unless one comes twice.
TEST(Resume, AFitAfterAStoppedOneTakesEachSampleOnce) {
  const SharedDirectory directory;
  Experiment setup = primes();
  setup.data.shuffle = true;
  setup.data.samples = 4 * setup.training.batch_size;
  setup.training.num_epochs = 1;
  setup.training.learning_rate = 0;
  const double expected = run<float>(setup, {}).metrics.final_loss();
  int asked = 0;
  Trainer<float> trainer(
      setup.model, setup.training, {},
      {.config = {.directory = directory.path()}, .wants_to_stop = [&] { return ++asked == 1; }});
  const TrainingMetrics stopped = trainer.fit(setup.data);
  ASSERT_TRUE(stopped.stopped);
  ASSERT_NE(stopped.steps % 4, 0);
  EXPECT_NEAR(trainer.fit(setup.data).final_loss(), expected, 1e-6 * expected);
}

// Ranks agree on the time during a step, so the save follows one step later.
TEST(Resume, RanksAgreeOnTheTime) {
  const SharedDirectory directory;
  const CheckpointConfig config{
      .directory = directory.path(), .every_minutes = 1e-12, .at_end = false, .keep = 0};
  const End end = run<float>(primes(), {.config = config});
  EXPECT_EQ(end.metrics.checkpoints, end.metrics.steps - 1);
}

TEST(ResumeErrors, AreTheSameOnAllRanks) {
  const SharedDirectory directory;
  const CheckpointConfig config{.directory = directory.path()};
  run<float>(primes(), {.config = config});
  const std::string path = file_of(directory, 6);
  const auto refused = [&](const Experiment& setup, const std::string& from) {
    return error_everywhere([&] { run<float>(setup, {}, from); });
  };
  Experiment other = primes();
  other.model.mlp.widths[1] = 9;
  EXPECT_EQ(refused(other, path), path +
                                      ": was written with model.widths = [3, 11, 13, 7, 5, 2], "
                                      "but this run has [3, 9, 13, 7, 5, 2]");
  other = primes();
  other.data.seed = 4;
  EXPECT_EQ(refused(other, path), path + ": was written with data.seed = 0, but this run has 4");
  EXPECT_EQ(refused(primes(), directory.file("none.safetensors")),
            directory.file("none.safetensors") + ": cannot be read: No such file or directory");
  const Communicator world = Communicator::world();
  if (world.rank() == 0) std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  world.barrier();
  EXPECT_TRUE(refused(primes(), path).starts_with(path + ": has "));
  EXPECT_EQ(error_everywhere([&] {
              Trainer<float> trainer = train_test::trainer_of<float>(primes());
              trainer.fit(primes().data);
              trainer.resume(path);
            }),
            path + ": cannot resume a trainer that has already trained; call reset() first");
}

TEST(ResumeErrors, NameOtherArrays) {
  const SharedDirectory directory;
  const Experiment setup = primes();
  const Matrix<float> x("x", 40, 3), y("y", 40, 2), other("other", 40, 2);
  Kokkos::deep_copy(x, 0.5F);
  Kokkos::deep_copy(y, 0.25F);
  Kokkos::deep_copy(other, 0.125F);
  const Checkpointing checkpointing{.config = {.directory = directory.path()}};
  Trainer<float> trainer(setup.model, setup.training, {}, checkpointing);
  const std::string saved = trainer.fit(x, y).last_checkpoint;
  const auto resume_with = [&](const Matrix<float>& targets) {
    Trainer<float> resumed(setup.model, setup.training);
    resumed.resume(saved);
    resumed.fit(x, targets);
  };
  resume_with(y);
  EXPECT_NE(error_everywhere([&] { trainer.fit(x, x); }), "");
  EXPECT_EQ(error_everywhere([&] { resume_with(other); }),
            saved + ": was written with data other than the arrays of fit()");
}

}  // namespace
}  // namespace tessera
